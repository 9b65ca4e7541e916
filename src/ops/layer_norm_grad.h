// layer_norm_grad(x, [weight], mean, rstd, dy, [residual]) -> dx, [dweight], [dbias]: the gradient of layer_norm. dx
// has residual, the gradient that reaches x on another way, added. dweight and dbias have the weight's shape and x's
// dtype.
#pragma once

#include "graph/builder.h"

namespace ingot {

struct LayerNormGradAttributes {
  int64_t axes = 1;
  bool has_weight = true;
  bool has_bias = true;  // dbias is asked for
  bool has_residual = false;
  static constexpr auto fields = std::tuple(field("axes", &LayerNormGradAttributes::axes),
                                            field("has_weight", &LayerNormGradAttributes::has_weight),
                                            field("has_bias", &LayerNormGradAttributes::has_bias),
                                            field("has_residual", &LayerNormGradAttributes::has_residual));
  bool operator==(const LayerNormGradAttributes&) const = default;
};

extern const OpDef kLayerNormGrad;
struct LayerNormGradOutputs {
  ValueId dx, dweight, dbias;  // kNone where not asked for
};
LayerNormGradOutputs layer_norm_grad(Builder& builder, ValueId x, ValueId weight, ValueId mean, ValueId rstd,
                                     ValueId dy, ValueId residual, bool has_bias, int64_t axes = 1);

}  // namespace ingot
