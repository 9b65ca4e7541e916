// The maps of base/dynamic_map.h in the form in which a vector kernel quantizes without a search.
#pragma once

#include <array>

#include "base/dynamic_map.h"

namespace ingot::kernels {

// By decade, and as long as the longest vector.
using DecadeTable = std::array<float, 16>;

// Magnitudes of decade i, which begins at from[i], have the places first + j with j = floor((x / decade - 0.1) · parts
// / 0.9) in [0, parts[i]), counted from zero; first is parts[i] in the signed map and one less in the unsigned one. All
// limits are halfway between neighbouring values.
struct MagnitudeMap {
  const float* values = nullptr;  // by code
  float nothing = 0;              // magnitudes below it are zero
  float one = 0;                  // magnitudes above it are 1
  DecadeTable from{}, parts{}, slope{};
};
const MagnitudeMap& magnitude_map(DynamicMap map);

}  // namespace ingot::kernels
