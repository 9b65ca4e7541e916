#include "graph/graph.h"

#include <algorithm>
#include <functional>
#include <queue>

#include "graph/op.h"

namespace ingot {

std::string Type::to_string() const {
  std::string text = std::string(name_of(dtype)) + shape.to_string();
  if (packed_bytes > 0) text += fmt::format(":packed({})", packed_bytes);
  return text;
}

ValueId Graph::add_source(SourceKind kind, std::string source_name, Type type) {
  INGOT_CHECK(find_source(source_name) == nullptr, "two sources named {}", source_name);
  const auto id = static_cast<ValueId>(values_.size());
  values_.push_back({type, kNone, 0});
  sources.push_back({id, kind, std::move(source_name)});
  return id;
}

NodeId Graph::add_node(const OpDef& op, std::vector<ValueId> inputs, Attributes attributes,
                       std::vector<Type> output_types, std::string path, int64_t order) {
  const auto id = static_cast<NodeId>(nodes_.size());
  Node node{&op, std::move(inputs), {}, std::move(attributes), std::move(path), 0, false};
  node.order = order == kNone ? static_cast<int64_t>(id) * 1024 : order;
  for (size_t i = 0; i < output_types.size(); ++i) {
    node.outputs.push_back(static_cast<ValueId>(values_.size()));
    values_.push_back({output_types[i], id, static_cast<int32_t>(i)});
  }
  nodes_.push_back(std::move(node));
  return id;
}

const Source* Graph::source_of(ValueId id) const {
  const auto it = std::ranges::find(sources, id, &Source::value);
  return it == sources.end() ? nullptr : &*it;
}

const Source* Graph::find_source(std::string_view source_name) const {
  const auto it = std::ranges::find(sources, source_name, &Source::name);
  return it == sources.end() ? nullptr : &*it;
}

ValueId Graph::find_output(std::string_view output_name) const {
  const auto it = std::ranges::find(outputs, output_name, &Output::name);
  return it == outputs.end() ? kNone : it->value;
}

std::vector<NodeId> Graph::schedule() const {
  std::vector<int32_t> missing(nodes_.size(), 0);
  std::vector<std::vector<NodeId>> waiting(nodes_.size());
  using Key = std::pair<int64_t, NodeId>;
  std::priority_queue<Key, std::vector<Key>, std::greater<>> ready;
  size_t live = 0;
  for (NodeId id = 0; id < node_count(); ++id) {
    if (node(id).dead) continue;
    ++live;
    for (ValueId input : node(id).inputs) {
      const NodeId from = value(input).producer;
      if (from == kNone) continue;
      waiting[static_cast<size_t>(from)].push_back(id);
      ++missing[static_cast<size_t>(id)];
    }
    if (missing[static_cast<size_t>(id)] == 0) ready.emplace(node(id).order, id);
  }
  std::vector<NodeId> order;
  while (!ready.empty()) {
    const NodeId id = ready.top().second;
    ready.pop();
    order.push_back(id);
    for (NodeId next : waiting[static_cast<size_t>(id)])
      if (--missing[static_cast<size_t>(next)] == 0) ready.emplace(node(next).order, next);
  }
  INGOT_CHECK(order.size() == live, "graph {} has a cycle or reads a dead node: {} of {} nodes can run", name,
              order.size(), live);
  return order;
}

std::vector<std::vector<NodeId>> Graph::readers() const {
  std::vector<std::vector<NodeId>> result(values_.size());
  for (NodeId id : schedule())
    for (ValueId input : node(id).inputs) {
      auto& list = result[static_cast<size_t>(input)];
      if (list.empty() || list.back() != id) list.push_back(id);
    }
  return result;
}

std::vector<bool> Graph::escapes() const {
  std::vector<bool> result(values_.size(), false);
  for (const Output& output : outputs) result[static_cast<size_t>(output.value)] = true;
  for (const Store& store : stores) result[static_cast<size_t>(store.value)] = true;
  return result;
}

void Graph::replace_uses(ValueId old_value, ValueId new_value) {
  for (Node& node : nodes_) {
    if (!node.dead) std::ranges::replace(node.inputs, old_value, new_value);
  }
  for (Output& output : outputs)
    if (output.value == old_value) output.value = new_value;
  for (Store& store : stores)
    if (store.value == old_value) store.value = new_value;
}

bool Graph::remove_dead_nodes() {
  std::vector<bool> needed(nodes_.size(), false);
  std::vector<NodeId> stack;
  const auto need = [&](ValueId id) {
    const NodeId from = value(id).producer;
    if (from == kNone || needed[static_cast<size_t>(from)]) return;
    needed[static_cast<size_t>(from)] = true;
    stack.push_back(from);
  };
  for (const Output& output : outputs) need(output.value);
  for (const Store& store : stores) need(store.value);
  while (!stack.empty()) {
    const NodeId id = stack.back();
    stack.pop_back();
    for (ValueId input : node(id).inputs) need(input);
  }
  bool changed = false;
  for (NodeId id = 0; id < node_count(); ++id) {
    if (needed[static_cast<size_t>(id)] || node(id).dead) continue;
    node(id).dead = true;
    changed = true;
  }
  return changed;
}

void Graph::remove_unread_sources() {
  const auto all_readers = readers();
  const auto all_escapes = escapes();
  std::erase_if(sources, [&](const Source& source) {
    const auto id = static_cast<size_t>(source.value);
    return all_readers[id].empty() && !all_escapes[id];
  });
}

Graph Graph::compacted() const {
  Graph result;
  result.name = name;
  std::vector<ValueId> renamed(values_.size(), kNone);
  for (const Source& source : sources)
    renamed[static_cast<size_t>(source.value)] = result.add_source(source.kind, source.name, type(source.value));
  for (NodeId id : schedule()) {
    const Node& old = node(id);
    std::vector<ValueId> inputs;
    for (ValueId input : old.inputs) inputs.push_back(renamed[static_cast<size_t>(input)]);
    std::vector<Type> types;
    for (ValueId output : old.outputs) types.push_back(type(output));
    const NodeId fresh = result.add_node(*old.op, std::move(inputs), old.attributes, std::move(types), old.path);
    for (size_t i = 0; i < old.outputs.size(); ++i)
      renamed[static_cast<size_t>(old.outputs[i])] = result.node(fresh).outputs[i];
  }
  for (const Output& output : outputs)
    result.outputs.push_back({output.name, renamed[static_cast<size_t>(output.value)]});
  for (const Store& store : stores)
    result.stores.push_back({renamed[static_cast<size_t>(store.variable)], renamed[static_cast<size_t>(store.value)]});
  return result;
}

}  // namespace ingot
