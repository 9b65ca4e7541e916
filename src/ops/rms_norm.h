// rms_norm(x, [weight]) -> y, rstd: each row (the last axis) times rstd = 1/sqrt(mean(x²) + eps), times weight (Zhang
// and Sennrich, arXiv:1910.07467). weight is [C]; rstd, f32, has the shape of the leading axes. It is kept for the
// gradient; none flows from it.
#pragma once

#include "graph/builder.h"

namespace ingot {

struct RmsNormAttributes {
  double eps = 1e-6;
  bool has_weight = true;
  static constexpr auto fields =
      std::tuple(field("eps", &RmsNormAttributes::eps), field("has_weight", &RmsNormAttributes::has_weight));
  bool operator==(const RmsNormAttributes&) const = default;
};

extern const OpDef kRmsNorm;
struct RmsNormOutputs {
  ValueId y, rstd;
};
// weight kNone: without it.
RmsNormOutputs rms_norm(Builder& builder, ValueId x, ValueId weight, double eps);

}  // namespace ingot
