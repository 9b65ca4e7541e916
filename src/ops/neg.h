// neg(x) = -x, elementwise.
#pragma once

#include "graph/builder.h"

namespace ingot {

extern const OpDef kNeg;
ValueId neg(Builder& builder, ValueId x);

}  // namespace ingot
