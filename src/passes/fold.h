// Constants are evaluated, operations that change nothing vanish (x + 0, x · 1, a reshape of a reshape, a pair of
// transposes, a split of what was just joined, …), and simpler ones take the place of others (a product with a constant
// is a scale, a transposed operand is a flag of the product).
#pragma once

#include "passes/pass.h"

namespace ingot {

bool fold(Graph& graph, PassContext& context);

}  // namespace ingot
