// Nodes go from which no output and no store can be reached.
#pragma once

#include "passes/pass.h"

namespace ingot {

bool dce(Graph& graph, PassContext& context);

}  // namespace ingot
