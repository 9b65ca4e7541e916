// gelu_tanh_grad(x, dy) = dy · gelu_tanh'(x), elementwise; x and dy have one shape.
#pragma once

#include "graph/builder.h"

namespace ingot {

extern const OpDef kGeluTanhGrad;
ValueId gelu_tanh_grad(Builder& builder, ValueId x, ValueId dy);

}  // namespace ingot
