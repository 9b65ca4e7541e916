// squared_relu(x) = max(x, 0)² (So et al., "Primer", arXiv:2109.08668), elementwise.
#pragma once

#include "graph/builder.h"

namespace ingot {

extern const OpDef kSquaredRelu;
ValueId squared_relu(Builder& builder, ValueId x);

}  // namespace ingot
