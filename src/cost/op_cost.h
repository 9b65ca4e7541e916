// What a node costs: floating-point operations and bytes moved, from types and attributes alone.
#pragma once

#include "graph/op.h"

namespace ingot {

struct OpCost {
  double flops = 0;     // additions and multiplications; a multiply-add is two, exp and the like count as kExpFlops
  double bytes = 0;     // read and written, each operand once
  bool matrix = false;  // most of the flops are matrix products

  OpCost& operator+=(const OpCost& other) {
    flops += other.flops;
    bytes += other.bytes;
    matrix = matrix || other.matrix;
    return *this;
  }
  bool operator==(const OpCost&) const = default;
};

// What vector code spends on one exp, log, tanh or erf.
inline constexpr double kExpFlops = 15;

// Zero for nodes that move nothing (views, parts of a variable). Attention is counted as if each row were one document:
// what packed documents hide from each other is saved, how much is not known before the data are seen.
OpCost cost_of(const Graph& graph, const Node& node);

// Whether cost_of knows the op: by an entry of its own or by its traits. False for none of ops/; a test asks.
bool has_cost_rule(const OpDef& op);

}  // namespace ingot
