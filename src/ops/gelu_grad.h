// gelu_grad(x, dy) = dy · gelu'(x), elementwise; x and dy have one shape.
#pragma once

#include "graph/builder.h"

namespace ingot {

extern const OpDef kGeluGrad;
ValueId gelu_grad(Builder& builder, ValueId x, ValueId dy);

}  // namespace ingot
