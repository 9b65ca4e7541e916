// clip_factor(parts…, gradient_scale) -> f32[3] {scale, skip, norm}: how to clip gradients by their norm, from the sums
// of squares f32[] of gradients that are gradient_scale f32[] times too large (the loss scale; 1 without one).
// norm = sqrt(sum of the member parts) / gradient_scale; scale = min(1, max_norm / (norm + 1e-6)) / gradient_scale,
// where the minimum is as torch.nn.utils.clip_grad_norm_ has it (1 where max_norm is 0: no clipping); skip = 1 where
// ANY part, member or not, is not finite, else 0.
#pragma once

#include "graph/builder.h"

namespace ingot {

struct ClipFactorAttributes {
  double max_norm = 0.0;
  std::vector<int64_t> members;  // parts that form this norm; a parameter group may have a norm of its own
  static constexpr auto fields =
      std::tuple(field("max_norm", &ClipFactorAttributes::max_norm), field("members", &ClipFactorAttributes::members));
  bool operator==(const ClipFactorAttributes&) const = default;
};

extern const OpDef kClipFactor;
ValueId clip_factor(Builder& builder, std::vector<ValueId> parts, ValueId gradient_scale,
                    ClipFactorAttributes attributes);

}  // namespace ingot
