// Conversion of tensor elements between dtypes, on bytes of any alignment (old safetensors files do not align theirs).
#pragma once

#include <cstddef>
#include <span>

#include "base/dtype.h"
#include "base/tensor.h"

namespace ingot {

// Whether elements of `from` can be stored as `to`: the same dtype, or both floating point. Integers are never
// converted.
constexpr bool is_convertible(DType from, DType to) {
  return from == to || (is_float(from) && is_float(to));
}

// Converts `count` elements, rounding to nearest even; wide to narrow goes through f32. The ranges must not overlap,
// and the dtypes must be convertible. Elements are independent: callers may cut the work over threads.
void convert_elements(DType from, const std::byte* source, DType to, std::byte* destination, size_t count);

// A tensor of any float dtype as f32; destination.size() must be its number of elements.
void convert_to_f32(const ConstTensorView& source, std::span<float> destination);

}  // namespace ingot
