// Which values can be other names for the bytes of one: reshapes, leading slices, parts of a split, and concatenations
// of neighbours.
#pragma once

#include <vector>

#include "graph/graph.h"

namespace ingot {

// A value that is (a part of) the bytes of another one.
struct ViewOf {
  ValueId base = kNone;  // kNone: it has bytes of its own
  int64_t offset = 0;    // bytes into base
};

// Output `output` of the node as a view of an input, by the node's kind and shapes alone.
ViewOf view_of(const Graph& graph, const Node& node, int32_t output);

// Groups of parameters and states that a concat along the first axis joins, in its order; and of those that a split
// along the first axis stores into. A source appears in at most one group.
std::vector<std::vector<ValueId>> joined_sources(const Graph& graph);

// Whether the node's inputs, laid end to end, are its output (a concat whose leading extents are 1).
bool joins_end_to_end(const Graph& graph, const Node& node);

}  // namespace ingot
