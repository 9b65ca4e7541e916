// Reverse-mode differentiation: the gradient of a graph is more nodes of the same graph.
#pragma once

#include <span>
#include <vector>

#include "graph/builder.h"

namespace ingot {

// Adds the nodes that compute d `loss` / d each of `wrt` (loss: an f32 scalar). A value that the loss does not depend
// on gets kNone. Contributions from several readers are added in the order of their nodes, last first. Gradient nodes
// carry the path of the node that they belong to, and run after all nodes so far.
std::vector<ValueId> add_gradients(Graph& graph, ValueId loss, std::span<const ValueId> wrt);

}  // namespace ingot
