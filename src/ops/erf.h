// erf(x): Gauss's error function, elementwise.
#pragma once

#include "graph/builder.h"

namespace ingot {

extern const OpDef kErf;
ValueId erf(Builder& builder, ValueId x);

}  // namespace ingot
