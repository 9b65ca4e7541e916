// Weights: the parameters of a graph, looked up by name under a prefix ("model.layers.3." + "mlp.up_proj.weight").
#pragma once

#include <string>
#include <string_view>

#include "graph/builder.h"

namespace ingot {

class Weights {
 public:
  explicit Weights(const Graph& graph, std::string prefix = "") : graph_(&graph), prefix_(std::move(prefix)) {}

  // The same weights seen from further inside.
  Weights under(std::string_view part) const { return Weights(*graph_, prefix_ + std::string(part) + "."); }
  ValueId operator()(std::string_view name) const;  // a name that there must be
  ValueId optional(std::string_view name) const;    // kNone where there is none
  const std::string& prefix() const { return prefix_; }

 private:
  const Graph* graph_;
  std::string prefix_;
};

}  // namespace ingot
