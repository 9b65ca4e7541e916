// silu(x) = x·sigmoid(x), elementwise ("swish").
#pragma once

#include "graph/builder.h"

namespace ingot {

extern const OpDef kSilu;
ValueId silu(Builder& builder, ValueId x);

}  // namespace ingot
