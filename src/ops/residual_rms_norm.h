// residual_rms_norm(x, delta, [weight]) -> sum, y, rstd: sum = x + dropout(delta), y = rms_norm(sum). One pass over a
// row while it is in cache. rstd is rms_norm's. Made after differentiation: no gradient.
#pragma once

#include "graph/builder.h"

namespace ingot {

struct ResidualRmsNormAttributes {
  double eps = 1e-6;
  bool has_weight = true;
  double dropout = 0.0;
  std::string stream;
  static constexpr auto fields = std::tuple(
      field("eps", &ResidualRmsNormAttributes::eps), field("has_weight", &ResidualRmsNormAttributes::has_weight),
      field("dropout", &ResidualRmsNormAttributes::dropout), field("stream", &ResidualRmsNormAttributes::stream));
  bool operator==(const ResidualRmsNormAttributes&) const = default;
};

extern const OpDef kResidualRmsNorm;

}  // namespace ingot
