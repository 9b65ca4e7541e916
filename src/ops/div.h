// div(a, b) = a / b, elementwise with broadcasting.
#pragma once

#include "graph/builder.h"

namespace ingot {

extern const OpDef kDiv;
ValueId div(Builder& builder, ValueId a, ValueId b);

}  // namespace ingot
