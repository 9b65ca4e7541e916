// The copies of weights in 16 bits that products read (passes/lower_precision.h): made anew right after each update,
// and once before the first step.
#pragma once

#include <string>
#include <vector>

#include "graph/builder.h"
#include "runtime/arena.h"

namespace ingot {

struct WeightCopy {
  std::string parameter;
  Type type;  // of the copy

  std::string variable() const;  // the state that holds it
};

// Those that the graph reads, in the order of its sources.
std::vector<WeightCopy> weight_copies(const Graph& graph);

// Stores `weight`, the parameter's new content, into its copy where it has one.
void refresh_copy(Builder& builder, std::span<const WeightCopy> copies, const std::string& parameter, ValueId weight);

// Makes all copies of an arena from its parameters as they are.
void fill_weight_copies(const Arena& arena);

}  // namespace ingot
