// rsqrt(x) = 1/√x, elementwise.
#pragma once

#include "graph/builder.h"

namespace ingot {

extern const OpDef kRsqrt;
ValueId rsqrt(Builder& builder, ValueId x);

}  // namespace ingot
