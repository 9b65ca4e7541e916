#include "passes/cse.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "graph/op.h"

namespace ingot {
namespace {

std::string key_of(const Node& node) {
  auto inputs = node.inputs;
  if (node.op->traits.commutative) std::ranges::sort(inputs);
  return fmt::format("{}({}){}", node.op->name, fmt::join(inputs, ","), node.attributes.to_string());
}

}  // namespace

bool cse(Graph& graph, PassContext&) {
  bool changed = false;
  std::map<std::string, NodeId> first;
  for (NodeId id : graph.schedule()) {
    const auto [known, fresh] = first.emplace(key_of(graph.node(id)), id);
    if (fresh) continue;
    for (size_t i = 0; i < graph.node(id).outputs.size(); ++i)
      graph.replace_uses(graph.node(id).outputs[i], graph.node(known->second).outputs[i]);
    graph.node(id).dead = true;
    changed = true;
  }
  return changed;
}

}  // namespace ingot
