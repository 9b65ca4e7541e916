#include "passes/rewriter.h"

#include <algorithm>

#include "ops/reshape.h"
#include "ops/transpose.h"

namespace ingot {

Rewriter::Rewriter(Graph& graph) : graph_(graph) {
  graph_.remove_dead_nodes();
  find_positions();
  find_readers();
  schedule_ = at_position_;
}

void Rewriter::find_positions() {
  positions_.assign(static_cast<size_t>(graph_.node_count()), 0);
  at_position_ = graph_.schedule();
  for (size_t i = 0; i < at_position_.size(); ++i)
    positions_[static_cast<size_t>(at_position_[i])] = static_cast<int64_t>(i);
  moved_ = false;
}

void Rewriter::find_readers() {
  readers_.assign(static_cast<size_t>(graph_.value_count()), {});
  for (NodeId id = 0; id < graph_.node_count(); ++id) {
    if (!live(id)) continue;
    for (ValueId input : node(id).inputs) {
      auto& list = readers_[static_cast<size_t>(input)];
      if (list.empty() || list.back() != id) list.push_back(id);
    }
  }
  escapes_ = graph_.escapes();
}

void Rewriter::refresh() {
  graph_.remove_dead_nodes();
  if (moved_) find_positions();
  find_readers();
}

const Source* Rewriter::parameter(ValueId id) const {
  if (producer(id) != kNone) return nullptr;
  const Source* source = graph_.source_of(id);
  return source != nullptr && source->kind == SourceKind::parameter ? source : nullptr;
}

NodeId Rewriter::only_reader(ValueId id) const {
  return !escapes(id) && readers(id).size() == 1 ? readers(id)[0] : kNone;
}

bool Rewriter::depends_on(ValueId value, NodeId target) const {
  std::vector<NodeId> stack{producer(value)};
  std::vector<bool> seen(static_cast<size_t>(graph_.node_count()), false);
  while (!stack.empty()) {
    const NodeId id = stack.back();
    stack.pop_back();
    if (id == kNone || seen[static_cast<size_t>(id)]) continue;
    if (id == target) return true;
    seen[static_cast<size_t>(id)] = true;
    if (position(id) < position(target)) continue;  // it runs before: it cannot need the target
    for (ValueId input : node(id).inputs) stack.push_back(producer(input));
  }
  return false;
}

NodeId Rewriter::insert(const OpDef& op, std::vector<ValueId> inputs, Attributes attributes, NodeId at) {
  int64_t order = node(at).order, place = position(at);
  for (ValueId input : inputs)
    if (const NodeId from = producer(input); from != kNone) {
      order = std::max(order, node(from).order);
      place = std::max(place, position(from));
    }
  moved_ = moved_ || place > position(at);
  Builder builder(graph_);
  builder.set_order(order);
  const Builder::Scope scope(builder, std::string(node(at).path), true);
  const NodeId id = builder.add_node(op, std::move(inputs), std::move(attributes));
  positions_.resize(static_cast<size_t>(graph_.node_count()), place);
  readers_.resize(static_cast<size_t>(graph_.value_count()));
  escapes_.resize(static_cast<size_t>(graph_.value_count()), false);
  if (!op.traits.view) at_position_[static_cast<size_t>(place)] = id;
  return id;
}

ValueId Rewriter::insert_value(const OpDef& op, std::vector<ValueId> inputs, Attributes attributes, NodeId at) {
  return node(insert(op, std::move(inputs), std::move(attributes), at)).outputs[0];
}

ValueId Rewriter::reshaped(ValueId x, const Shape& to, NodeId at) {
  if (const NodeId view = producer(x, kReshape); view != kNone) x = node(view).inputs[0];
  if (shape(x) == to) return x;
  return insert_value(kReshape, {x}, ReshapeAttributes{{to.begin(), to.end()}}, at);
}

ValueId Rewriter::transposed(ValueId x, std::vector<int64_t> permutation, NodeId at) {
  if (const NodeId inner = producer(x, kTranspose); inner != kNone) {
    const auto& first = node(inner).attributes.as<TransposeAttributes>().permutation;
    for (int64_t& axis : permutation) axis = first[static_cast<size_t>(axis)];
    x = node(inner).inputs[0];
  }
  if (std::ranges::is_sorted(permutation)) return x;
  return insert_value(kTranspose, {x}, TransposeAttributes{std::move(permutation)}, at);
}

void Rewriter::replace(ValueId old_value, ValueId new_value) {
  graph_.replace_uses(old_value, new_value);
}

}  // namespace ingot
