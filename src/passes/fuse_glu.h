// activation(gate) · up of the two halves of one value becomes glu.
#pragma once

#include "passes/pass.h"

namespace ingot {

bool fuse_glu(Graph& graph, PassContext& context);

}  // namespace ingot
