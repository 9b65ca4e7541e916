// Dropout whose stream is the path where it stands.
#pragma once

#include "graph/builder.h"

namespace ingot {

// x itself where p is 0. One at a path: a second one there would drop the same elements.
ValueId path_dropout(Builder& builder, ValueId x, double p);

}  // namespace ingot
