// cross_entropy_grad(logits [R,V], targets i32 [R], scale f32 [], dloss f32 []) -> dlogits [R,V]:
//   dloss · scale · (softmax(logits[r]) - onehot(targets[r])), zeros for rows with a negative target.
#pragma once

#include "graph/builder.h"

namespace ingot {

extern const OpDef kCrossEntropyGrad;
ValueId cross_entropy_grad(Builder& builder, ValueId logits, ValueId targets, ValueId scale, ValueId dloss);

}  // namespace ingot
