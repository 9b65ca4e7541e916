#include "base/dynamic_map.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace ingot {
namespace {

std::array<float, 256> make_values(bool is_signed) {
  std::array<double, 256> values = {0.0, 1.0};
  size_t count = 2;
  for (int decade = 0; decade < kDynamicDecades; ++decade) {
    const int parts = 1 << (is_signed ? decade : decade + 1);
    for (int part = 0; part < parts; ++part) {
      const double value = std::pow(10.0, decade - kDynamicDecades + 1) * (0.1 + 0.9 * (part + 0.5) / parts);
      values[count++] = value;
      if (is_signed) values[count++] = -value;
    }
  }
  std::ranges::sort(values);
  std::array<float, 256> result{};
  std::ranges::transform(values, result.begin(), [](double value) { return static_cast<float>(value); });
  return result;
}

}  // namespace

std::span<const float, 256> dynamic_values(DynamicMap map) {
  static const std::array<float, 256> kSigned = make_values(true), kUnsigned = make_values(false);
  return map == DynamicMap::signed_values ? kSigned : kUnsigned;
}

uint8_t dynamic_code(DynamicMap map, double x) {
  const auto values = dynamic_values(map);
  const auto above = std::ranges::lower_bound(values, x, {}, [](float value) { return double{value}; });
  auto code = static_cast<int>(above - values.begin());
  if (code == 256 ||
      (code > 0 && x - double{values[static_cast<size_t>(code - 1)]} < double{values[static_cast<size_t>(code)]} - x))
    --code;
  if (map == DynamicMap::unsigned_values && x > 0) code = std::max(code, 1);
  return static_cast<uint8_t>(code);
}

}  // namespace ingot
