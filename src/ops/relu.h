// relu(x) = max(x, 0), elementwise.
#pragma once

#include "graph/builder.h"

namespace ingot {

extern const OpDef kRelu;
ValueId relu(Builder& builder, ValueId x);

}  // namespace ingot
