#include <set>

#include "graph/storage.h"
#include "graph/text.h"

namespace ingot {
namespace {

Status verify_node(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  const auto wrong = [&](const std::string& what) {
    return failed_error("graph {}: node {} ({} at \"{}\"): {}", graph.name, id,
                        node.op == nullptr ? "?" : node.op->name, node.path, what);
  };
  if (node.op == nullptr) return wrong("it has no op");
  std::vector<Type> types;
  for (ValueId input : node.inputs) {
    if (input < 0 || input >= graph.value_count()) return wrong(fmt::format("input {} is no value", input));
    const NodeId from = graph.value(input).producer;
    if (from != kNone && graph.node(from).dead) return wrong(fmt::format("input %{} comes from a dead node", input));
    types.push_back(graph.type(input));
  }
  auto inferred = node.op->infer(types, node.attributes);
  if (!inferred.ok()) return wrong(inferred.error().message);
  if (inferred->size() != node.outputs.size())
    return wrong(fmt::format("{} outputs, its rule gives {}", node.outputs.size(), inferred->size()));
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const Value& value = graph.value(node.outputs[i]);
    if (value.producer != id || value.output != static_cast<int32_t>(i))
      return wrong(fmt::format("output {} does not point back", i));
    if (!is_stored_form(value.type, (*inferred)[i]))
      return wrong(fmt::format("output {} has type {}, its rule gives {}", i, value.type.to_string(),
                               (*inferred)[i].to_string()));
  }
  return {};
}

Status verify_ends(const Graph& graph) {
  std::set<std::string> names;
  const auto live = [&](ValueId id) {
    return id >= 0 && id < graph.value_count() && (graph.producer(id) == nullptr || !graph.producer(id)->dead);
  };
  for (const Output& output : graph.outputs) {
    if (!live(output.value)) return failed_error("graph {}: output {} is no live value", graph.name, output.name);
    if (!names.insert(output.name).second)
      return failed_error("graph {}: two outputs named {}", graph.name, output.name);
  }
  std::set<ValueId> stored;
  for (const Store& store : graph.stores) {
    const Source* variable = graph.source_of(store.variable);
    if (variable == nullptr || variable->kind == SourceKind::input)
      return failed_error("graph {}: a store into %{}, which is no parameter or state", graph.name, store.variable);
    if (!live(store.value))
      return failed_error("graph {}: {} is given a value that is not live", graph.name, variable->name);
    if (!(graph.type(store.variable) == graph.type(store.value)))
      return failed_error("graph {}: {} of type {} is given {}", graph.name, variable->name,
                          graph.type(store.variable).to_string(), graph.type(store.value).to_string());
    if (!stored.insert(store.variable).second)
      return failed_error("graph {}: {} is given two values", graph.name, variable->name);
  }
  return {};
}

}  // namespace

Status verify_graph(const Graph& graph) {
  for (NodeId id = 0; id < graph.node_count(); ++id)
    if (!graph.node(id).dead) INGOT_TRY(verify_node(graph, id));
  INGOT_TRY(verify_ends(graph));
  try {
    (void)graph.schedule();
  } catch (const BugError& problem) {
    return failed_error("{}", problem.what());
  }
  return {};
}

}  // namespace ingot
