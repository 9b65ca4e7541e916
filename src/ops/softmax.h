// softmax(x) over the last axis. A row of nothing but -inf gives zeros: what may attend to nothing yields nothing.
#pragma once

#include "graph/builder.h"

namespace ingot {

extern const OpDef kSoftmax;
ValueId softmax(Builder& builder, ValueId x);

}  // namespace ingot
