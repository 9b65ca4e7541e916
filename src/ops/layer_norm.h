// layer_norm(x, [weight], [bias]) -> y, mean, rstd: each row (the trailing `axes` axes) less its mean, times
// rstd = 1/sqrt(variance + eps), times weight, plus bias (Ba et al., arXiv:1607.06450). weight and bias have the shape
// of the trailing axes; mean and rstd, f32, that of the leading ones. They are kept for the gradient; none flows from
// them.
#pragma once

#include "graph/builder.h"

namespace ingot {

struct LayerNormAttributes {
  int64_t axes = 1;
  double eps = 1e-5;
  bool has_weight = true;
  bool has_bias = true;
  static constexpr auto fields = std::tuple(
      field("axes", &LayerNormAttributes::axes), field("eps", &LayerNormAttributes::eps),
      field("has_weight", &LayerNormAttributes::has_weight), field("has_bias", &LayerNormAttributes::has_bias));
  bool operator==(const LayerNormAttributes&) const = default;
};

extern const OpDef kLayerNorm;
struct LayerNormOutputs {
  ValueId y, mean, rstd;
};
// weight or bias kNone: without it.
LayerNormOutputs layer_norm(Builder& builder, ValueId x, ValueId weight, ValueId bias, double eps, int64_t axes = 1);

}  // namespace ingot
