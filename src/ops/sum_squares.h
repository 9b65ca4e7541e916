// sum_squares(x) -> f32[]: the sum of all elements' squares, a part of a gradient norm.
#pragma once

#include "graph/builder.h"

namespace ingot {

extern const OpDef kSumSquares;
ValueId sum_squares(Builder& builder, ValueId x);

}  // namespace ingot
