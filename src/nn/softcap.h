// Soft limits on scores and logits (Gemma 2, arXiv:2408.00118).
#pragma once

#include "graph/builder.h"

namespace ingot {

// cap·tanh(x / cap), elementwise; x itself where cap is 0.
ValueId softcap(Builder& builder, ValueId x, double cap);

}  // namespace ingot
