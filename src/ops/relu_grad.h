// relu_grad(x, dy) = dy · relu'(x) (0 at x = 0), elementwise; x and dy have one shape.
#pragma once

#include "graph/builder.h"

namespace ingot {

extern const OpDef kReluGrad;
ValueId relu_grad(Builder& builder, ValueId x, ValueId dy);

}  // namespace ingot
