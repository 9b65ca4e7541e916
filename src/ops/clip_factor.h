// clip_factor(parts…) -> f32[3] {scale, skip, norm}: how to clip gradients by their norm, from sums of squares f32[].
// norm = sqrt(sum of the member parts); scale = min(1, max_norm / (norm + 1e-6)) as torch.nn.utils.clip_grad_norm_ has
// it (1 where max_norm is 0: no clipping); skip = 1 where ANY part, member or not, is not finite, else 0.
#pragma once

#include "graph/builder.h"

namespace ingot {

struct ClipFactorAttributes {
  double max_norm = 0.0;
  std::vector<int64_t> members;  // inputs that form this norm; a parameter group may have a norm of its own
  static constexpr auto fields =
      std::tuple(field("max_norm", &ClipFactorAttributes::max_norm), field("members", &ClipFactorAttributes::members));
  bool operator==(const ClipFactorAttributes&) const = default;
};

extern const OpDef kClipFactor;
ValueId clip_factor(Builder& builder, std::vector<ValueId> parts, ClipFactorAttributes attributes);

}  // namespace ingot
