// adamw(param, grad, m, v, control, clip) -> param', m', v': one step of AdamW (Loshchilov and Hutter, "Decoupled
// Weight Decay Regularization", 2019) in the order of operations of torch.optim.AdamW:
//
//   g = grad · clip[0];  lr = control[0] · learning_rate_scale
//   param ·= 1 - lr · weight_decay;  m = beta1·m + (1 - beta1)·g;  v = beta2·v + (1 - beta2)·g²
//   param -= lr / control[1] · m / (sqrt(v) / sqrt(control[2]) + eps)
//
// control is f32[3] {learning rate, 1 - beta1^t, 1 - beta2^t}; clip is f32[3] {gradient scale, skip, norm} as
// clip_factor gives it: where skip is not 0, param, m and v stay as they are.
#pragma once

#include <array>

#include "graph/builder.h"

namespace ingot {

struct AdamwAttributes {
  double beta1 = 0.9, beta2 = 0.95, eps = 1e-8, weight_decay = 0.0, learning_rate_scale = 1.0;
  static constexpr auto fields =
      std::tuple(field("beta1", &AdamwAttributes::beta1), field("beta2", &AdamwAttributes::beta2),
                 field("eps", &AdamwAttributes::eps), field("weight_decay", &AdamwAttributes::weight_decay),
                 field("learning_rate_scale", &AdamwAttributes::learning_rate_scale));
  bool operator==(const AdamwAttributes&) const = default;
};

struct AdamwInputs {
  ValueId param, grad, m, v, control, clip;
};

extern const OpDef kAdamw;
// {param', m', v'}
std::array<ValueId, 3> adamw(Builder& builder, const AdamwInputs& inputs, AdamwAttributes attributes);

}  // namespace ingot
