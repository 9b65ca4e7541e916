// sqrt(x) = √x, elementwise.
#pragma once

#include "graph/builder.h"

namespace ingot {

extern const OpDef kSqrt;
ValueId sqrt(Builder& builder, ValueId x);

}  // namespace ingot
