// softmax_grad(y, dy) = y · (dy - sum(y · dy)) over the last axis; y is the softmax's output.
#pragma once

#include "graph/builder.h"

namespace ingot {

extern const OpDef kSoftmaxGrad;
ValueId softmax_grad(Builder& builder, ValueId y, ValueId dy);

}  // namespace ingot
