// Products of one input with several parameters (queries, keys and values; gate and up) become one product with the
// parameters joined, their biases joined too, and its result split. Joining parameters costs nothing: the memory plan
// places them side by side.
#pragma once

#include "passes/pass.h"

namespace ingot {

bool fuse_shared_input(Graph& graph, PassContext& context);

}  // namespace ingot
