// linear_cross_entropy_grad(x, w, targets, scale, dloss) -> loss, dx, dw: loss and gradients of linear_cross_entropy in
// one pass over the chunks of logits. The loss is that of the forward op and does not depend on dloss (f32[]).
#pragma once

#include "ops/linear_cross_entropy.h"

namespace ingot {

extern const OpDef kLinearCrossEntropyGrad;

}  // namespace ingot
