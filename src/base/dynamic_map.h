// The dynamic 8-bit data type that optimizer states are kept in (Dettmers et al., "8-bit Optimizers via Block-wise
// Quantization", 2022, section 1.3; the values are those of the authors' library bitsandbytes). Numbers are relative to
// the largest magnitude of their block, so they lie in [-1, 1]. Each decade from 1e-7 to 1 is cut into equal parts,
// twice as many as the decade below, of which the middles are values; 0 and 1 are values, too.
#pragma once

#include <cstdint>
#include <span>

namespace ingot {

inline constexpr int64_t kDynamicBlock = 256;  // numbers that share a scale
inline constexpr int kDynamicDecades = 7;

enum class DynamicMap {
  signed_values,    // both signs, 2^i parts in decade i = 0, 1, …, 6
  unsigned_values,  // none below zero, 2^(i+1) parts
};

// The 256 values by code, ascending.
std::span<const float, 256> dynamic_values(DynamicMap map);
// The code of zero.
constexpr int dynamic_zero(DynamicMap map) {
  return map == DynamicMap::signed_values ? 127 : 0;
}

// The code of the value nearest to x. Of the unsigned map a number above zero never becomes zero: a second moment that
// did would let the step divide by eps alone.
uint8_t dynamic_code(DynamicMap map, double x);

}  // namespace ingot
