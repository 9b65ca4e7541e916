// rms_norm_grad(x, [weight], rstd, dy, [residual]) -> dx, [dweight]: the gradient of rms_norm. dx has residual, the
// gradient that reaches x on another way, added. dweight has the weight's shape and x's dtype.
#pragma once

#include "graph/builder.h"

namespace ingot {

struct RmsNormGradAttributes {
  bool has_weight = true;
  bool has_residual = false;
  static constexpr auto fields = std::tuple(field("has_weight", &RmsNormGradAttributes::has_weight),
                                            field("has_residual", &RmsNormGradAttributes::has_residual));
  bool operator==(const RmsNormGradAttributes&) const = default;
};

extern const OpDef kRmsNormGrad;
struct RmsNormGradOutputs {
  ValueId dx, dweight;  // dweight kNone without a weight
};
RmsNormGradOutputs rms_norm_grad(Builder& builder, ValueId x, ValueId weight, ValueId rstd, ValueId dy,
                                 ValueId residual);

}  // namespace ingot
