// lion(param, grad, m, control, clip) -> param', m': one step of Lion (Chen et al., "Symbolic Discovery of Optimization
// Algorithms", 2023, algorithm 2):
//
//   g = grad · clip[0];  lr = control[0] · learning_rate_scale
//   param ·= 1 - lr · weight_decay;  param -= lr · sign(beta1·m + (1 - beta1)·g);  m = beta2·m + (1 - beta2)·g
//
// control is f32[3] whose first entry is the learning rate; clip is f32[3] {gradient scale, skip, norm} as clip_factor
// gives it: where skip is not 0, param and m stay as they are.
#pragma once

#include <array>

#include "graph/builder.h"

namespace ingot {

struct LionAttributes {
  double beta1 = 0.9, beta2 = 0.99, weight_decay = 0.0, learning_rate_scale = 1.0;
  static constexpr auto fields =
      std::tuple(field("beta1", &LionAttributes::beta1), field("beta2", &LionAttributes::beta2),
                 field("weight_decay", &LionAttributes::weight_decay),
                 field("learning_rate_scale", &LionAttributes::learning_rate_scale));
  bool operator==(const LionAttributes&) const = default;
};

struct LionInputs {
  ValueId param, grad, m, control, clip;
};

extern const OpDef kLion;
// {param', m'}
std::array<ValueId, 2> lion(Builder& builder, const LionInputs& inputs, LionAttributes attributes);

}  // namespace ingot
