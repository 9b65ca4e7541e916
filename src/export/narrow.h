// What happens to numbers when a model is stored in a narrower type.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "base/dtype.h"
#include "base/result.h"

namespace ingot {

// The first of `count` elements (of any alignment) that is finite, but beyond what `to` can hold once rounded to
// nearest even; none where all survive. Both floating point.
std::optional<double> first_overflow(DType from, const std::byte* source, DType to, size_t count);

// Error (failed) for such a number of a tensor.
Error overflow_error(const std::string& tensor, double value, std::string_view to);

// Q8_0 as ggml defines it: blocks of 32 numbers, each (scale as f16, then 32 int8): scale = largest magnitude / 127,
// numbers = round(x / scale), halves away from zero, with the scale in f32. `out` has 34 bytes a block. False: a block
// holds a number that is not finite, or its scale is beyond f16.
[[nodiscard]] bool quantize_q8_0(std::span<const float> values, std::byte* out);

}  // namespace ingot
