// cross_entropy(logits [R,V], targets i32 [R], scale f32 []) -> f32 []:
//   scale · sum over the rows with targets[r] >= 0 of (logsumexp(logits[r]) - logits[r, targets[r]]).
// Rows with a negative target do not count. Targets are already shifted: targets[t] is the token that t predicts.
#pragma once

#include "graph/builder.h"

namespace ingot {

extern const OpDef kCrossEntropy;
ValueId cross_entropy(Builder& builder, ValueId logits, ValueId targets, ValueId scale);

}  // namespace ingot
