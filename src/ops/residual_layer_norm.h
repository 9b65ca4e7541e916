// residual_layer_norm(x, delta, [weight], [bias]) -> sum, y, mean, rstd: sum = x + dropout(delta), y = layer_norm(sum).
// One pass over a row while it is in cache. mean and rstd are layer_norm's. Made after differentiation: no gradient.
#pragma once

#include "graph/builder.h"

namespace ingot {

struct ResidualLayerNormAttributes {
  int64_t axes = 1;  // the mean is over so many last axes
  double eps = 1e-5;
  bool has_weight = true, has_bias = true;
  double dropout = 0.0;
  std::string stream;
  static constexpr auto fields = std::tuple(
      field("axes", &ResidualLayerNormAttributes::axes), field("eps", &ResidualLayerNormAttributes::eps),
      field("has_weight", &ResidualLayerNormAttributes::has_weight),
      field("has_bias", &ResidualLayerNormAttributes::has_bias),
      field("dropout", &ResidualLayerNormAttributes::dropout), field("stream", &ResidualLayerNormAttributes::stream));
  bool operator==(const ResidualLayerNormAttributes&) const = default;
};

extern const OpDef kResidualLayerNorm;

}  // namespace ingot
