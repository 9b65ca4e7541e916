// exp(x) = e^x, elementwise.
#pragma once

#include "graph/builder.h"

namespace ingot {

extern const OpDef kExp;
ValueId exp(Builder& builder, ValueId x);

}  // namespace ingot
