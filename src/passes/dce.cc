#include "passes/dce.h"

namespace ingot {

bool dce(Graph& graph, PassContext&) {
  return graph.remove_dead_nodes();
}

}  // namespace ingot
