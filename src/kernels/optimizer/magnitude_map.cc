#include "kernels/optimizer/magnitude_map.h"

#include <cmath>

namespace ingot::kernels {
namespace {

MagnitudeMap make_magnitude_map(DynamicMap map) {
  const float* values = dynamic_values(map).data();
  const bool is_signed = map == DynamicMap::signed_values;
  const float* magnitudes = values + dynamic_zero(map);
  MagnitudeMap result;
  result.values = values;
  result.nothing = is_signed ? magnitudes[1] / 2 : 0;
  const int largest = 255 - dynamic_zero(map);
  result.one = (magnitudes[largest - 1] + magnitudes[largest]) / 2;
  for (int decade = 0; decade < kDynamicDecades; ++decade) {
    const auto i = static_cast<size_t>(decade);
    const int parts = 1 << (is_signed ? decade : decade + 1), first = is_signed ? parts : parts - 1;
    result.from[i] = (magnitudes[first - 1] + magnitudes[first]) / 2;
    result.parts[i] = static_cast<float>(parts);
    result.slope[i] = static_cast<float>(parts / 0.9 * std::pow(10.0, kDynamicDecades - 1 - decade));
  }
  return result;
}

}  // namespace

const MagnitudeMap& magnitude_map(DynamicMap map) {
  static const MagnitudeMap kSigned = make_magnitude_map(DynamicMap::signed_values),
                            kUnsigned = make_magnitude_map(DynamicMap::unsigned_values);
  return map == DynamicMap::signed_values ? kSigned : kUnsigned;
}

}  // namespace ingot::kernels
