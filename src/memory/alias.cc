#include "memory/alias.h"

#include <map>
#include <set>

#include "graph/op.h"

namespace ingot {
namespace {

int64_t leading_extent(const Shape& shape, int64_t axis) {
  int64_t product = 1;
  for (int i = 0; i < axis; ++i) product *= shape[i];
  return product;
}

}  // namespace

ViewOf view_of(const Graph& graph, const Node& node, int32_t output) {
  if (node.op->traits.view) return {node.inputs[0], 0};
  if (node.op->traits.part.has_value()) {
    const auto part = (*node.op->traits.part)(node.attributes, output);
    const Type& whole = graph.type(node.inputs[0]);
    if (leading_extent(whole.shape, part.axis) != 1) return {};
    int64_t below = 1;
    for (int i = static_cast<int>(part.axis) + 1; i < whole.shape.rank(); ++i) below *= whole.shape[i];
    return {node.inputs[0], part.start * below * static_cast<int64_t>(size_of(whole.dtype))};
  }
  return {};
}

bool joins_end_to_end(const Graph& graph, const Node& node) {
  if (!node.op->traits.join.has_value()) return false;
  return leading_extent(graph.shape(node.outputs[0]), (*node.op->traits.join)(node.attributes)) == 1;
}

std::vector<std::vector<ValueId>> joined_sources(const Graph& graph) {
  std::vector<std::vector<ValueId>> groups;
  std::set<ValueId> taken;
  const auto add_group = [&](const std::vector<ValueId>& group) {
    for (ValueId id : group)
      if (graph.source_of(id) == nullptr || graph.source_of(id)->kind == SourceKind::input || taken.contains(id))
        return;
    if (std::set<ValueId>(group.begin(), group.end()).size() != group.size()) return;
    taken.insert(group.begin(), group.end());
    groups.push_back(group);
  };
  std::map<ValueId, ValueId> stored_in;  // value -> variable
  for (const Store& store : graph.stores) stored_in.emplace(store.value, store.variable);
  for (NodeId id : graph.schedule()) {
    const Node& node = graph.node(id);
    if (joins_end_to_end(graph, node)) add_group(node.inputs);
    if (!node.op->traits.part.has_value() || node.outputs.size() < 2) continue;
    std::vector<ValueId> variables;
    for (ValueId output : node.outputs)
      if (const auto it = stored_in.find(output); it != stored_in.end()) variables.push_back(it->second);
    if (variables.size() == node.outputs.size() && view_of(graph, node, 0).base != kNone) add_group(variables);
  }
  return groups;
}

}  // namespace ingot
