// square(x) = x², elementwise.
#pragma once

#include "graph/builder.h"

namespace ingot {

extern const OpDef kSquare;
ValueId square(Builder& builder, ValueId x);

}  // namespace ingot
