#include "cost/estimate.h"

#include <algorithm>

namespace ingot {

double seconds_at_limit(const OpCost& cost, const MachineLimits& limits) {
  const double arithmetic = cost.flops / (limits.product_gflops * 1e9);
  const double memory = cost.bytes / (limits.copy_gbytes_per_s * 1e9);
  return std::max(arithmetic, memory);
}

GraphCost estimate(const Graph& graph, const MachineLimits& limits) {
  GraphCost result;
  for (NodeId id : graph.schedule()) {
    const Node& node = graph.node(id);
    const OpCost cost = cost_of(graph, node);
    const double seconds = seconds_at_limit(cost, limits);
    result.total += cost;
    result.seconds += seconds;
    result.seconds_by_op[std::string(node.op->name)] += seconds;
  }
  return result;
}

}  // namespace ingot
