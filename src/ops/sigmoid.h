// sigmoid(x) = 1 / (1 + e^-x), elementwise.
#pragma once

#include "graph/builder.h"

namespace ingot {

extern const OpDef kSigmoid;
ValueId sigmoid(Builder& builder, ValueId x);

}  // namespace ingot
