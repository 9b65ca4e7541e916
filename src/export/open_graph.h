// OpenGraph: a generation graph whose batch size and number of tokens are left open. Graphs have fixed shapes; building
// one for two different sizes tells which extents follow the batch, the tokens or the caches' capacity, and which stay.
// What depends on them in any other way is found, not guessed at.
#pragma once

#include <functional>
#include <vector>

#include "graph/graph.h"
#include "models/model.h"

namespace ingot {

// factor, times the batch size, times the number of new tokens, times the caches' capacity, where each is set.
struct Extent {
  int64_t factor = 1;
  bool batch = false, tokens = false, capacity = false;

  bool fixed() const { return !batch && !tokens && !capacity; }
  bool operator==(const Extent&) const = default;
};
using Extents = std::vector<Extent>;

struct GraphSizes {
  int64_t batch = 1, tokens = 1, capacity = 1;
};

class OpenGraph {
 public:
  // `build` gives the same graph for any sizes. Error (usage): the graphs differ by more than extents, or an extent is
  // no Extent; the message names the op and its place.
  static Result<OpenGraph> make(const std::function<Graph(const GraphSizes&)>& build);

  // Built for some sizes: what it says about extents counts for these alone.
  const Graph& graph() const { return graph_; }
  const Extents& extents(ValueId value) const { return extents_[static_cast<size_t>(value)]; }
  // Whether the node's attributes depend on the sizes.
  bool attributes_vary(NodeId node) const { return varying_[static_cast<size_t>(node)]; }

 private:
  Graph graph_;
  std::vector<Extents> extents_;  // by value
  std::vector<bool> varying_;     // by node
};

// The model's graph with caches: inputs "ids" and "positions" [B,T] and "start" [B], the caches, and the output
// "logits" [B,T,V].
Result<OpenGraph> open_generation_graph(const Model& model);

}  // namespace ingot
