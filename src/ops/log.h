// log(x): the natural logarithm, elementwise.
#pragma once

#include "graph/builder.h"

namespace ingot {

extern const OpDef kLog;
ValueId log(Builder& builder, ValueId x);

}  // namespace ingot
