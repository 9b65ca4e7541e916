// quantized_linear(x f32 [...,K], values i8 [N,K], scales f32 [N,G]) -> f32 [...,N]: x times the transpose of the
// weight scales[n, k / group] * values[n, k], with G the number of groups of K. For generation; no gradient.
#pragma once

#include "graph/builder.h"

namespace ingot {

struct QuantizedAttributes {
  int64_t group = 64;  // inputs that share a scale; a multiple of 16
  static constexpr auto fields = std::tuple(field("group", &QuantizedAttributes::group));
  bool operator==(const QuantizedAttributes&) const = default;
};

// The types of values and scales for a weight of so many outputs and inputs.
Type quantized_values_type(int64_t outputs, int64_t inputs);
Type quantized_scales_type(int64_t outputs, int64_t inputs, int64_t group);
// What is wrong with a quantized weight, if anything.
Status check_quantized(const Type& values, const Type& scales, const QuantizedAttributes& attributes);

extern const OpDef kQuantizedLinear;

}  // namespace ingot
