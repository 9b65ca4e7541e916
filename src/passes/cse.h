// Common subexpressions: of nodes with one op, attributes and inputs the first stays. Random ops name their stream, so
// equal ones draw equal numbers and are merged too.
#pragma once

#include "passes/pass.h"

namespace ingot {

bool cse(Graph& graph, PassContext& context);

}  // namespace ingot
