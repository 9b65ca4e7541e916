// Gradients as outputs of a graph. Internal to optim/.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "graph/graph.h"

namespace ingot {

// Adds the gradients of the loss (f32 []) by the named values as outputs gradient_name(NAME); zeros where the loss does
// not depend on one.
void output_gradients(Graph& graph, ValueId loss, const std::vector<std::pair<std::string, ValueId>>& wrt);

}  // namespace ingot
