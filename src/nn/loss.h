// The language model's loss.
#pragma once

#include "graph/builder.h"

namespace ingot {

// x [B,T,C] times the head (weight [V,C] where `transposed`, else [C,V]), with a soft cap (nn/softcap.h) where it is
// not 0 -> logits [B·T,V].
ValueId head_logits(Builder& builder, ValueId x, ValueId weight, bool transposed, double cap);

// scale · the sum of the cross-entropies over targets i32 [B,T] that are not negative; logits [B·T,V] -> f32 [].
ValueId token_loss(Builder& builder, ValueId logits, ValueId targets, ValueId scale);

}  // namespace ingot
