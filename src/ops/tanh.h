// tanh(x), elementwise.
#pragma once

#include "graph/builder.h"

namespace ingot {

extern const OpDef kTanh;
ValueId tanh(Builder& builder, ValueId x);

}  // namespace ingot
