// add(a, b) = a + b, elementwise with broadcasting.
#pragma once

#include "graph/builder.h"

namespace ingot {

extern const OpDef kAdd;
ValueId add(Builder& builder, ValueId a, ValueId b);

}  // namespace ingot
