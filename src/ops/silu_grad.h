// silu_grad(x, dy) = dy · silu'(x), elementwise; x and dy have one shape.
#pragma once

#include "graph/builder.h"

namespace ingot {

extern const OpDef kSiluGrad;
ValueId silu_grad(Builder& builder, ValueId x, ValueId dy);

}  // namespace ingot
