// sub(a, b) = a - b, elementwise with broadcasting.
#pragma once

#include "graph/builder.h"

namespace ingot {

extern const OpDef kSub;
ValueId sub(Builder& builder, ValueId a, ValueId b);

}  // namespace ingot
