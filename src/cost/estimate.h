// The cost of a whole graph, and the time that a machine needs for it: a roofline for each node, the larger of its
// arithmetic at the rate of products and its bytes at the rate of copying (Williams, Waterman and Patterson,
// "Roofline", 2009). Nodes run one after the other, so times add up.
#pragma once

#include <map>
#include <string>

#include "cost/machine.h"
#include "cost/op_cost.h"

namespace ingot {

// Seconds that a node takes at the least.
double seconds_at_limit(const OpCost& cost, const MachineLimits& limits);

struct GraphCost {
  OpCost total;
  double seconds = 0;
  std::map<std::string, double> seconds_by_op;
};

GraphCost estimate(const Graph& graph, const MachineLimits& limits);

}  // namespace ingot
