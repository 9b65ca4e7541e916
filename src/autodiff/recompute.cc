#include "autodiff/recompute.h"

#include <algorithm>
#include <charconv>
#include <vector>

#include "graph/op.h"

namespace ingot {
namespace {

class Recomputation {
 public:
  Recomputation(Graph& graph, ValueId loss, std::span<const RecomputeLevel> levels)
      : graph_(graph), levels_(levels), schedule_(graph.schedule()) {
    const auto pivot = std::ranges::find(schedule_, graph.value(loss).producer);
    forward_ = std::span(schedule_.begin(), pivot);
    backward_ = std::span(pivot, schedule_.end());
    crosses_.assign(values(), false);
    needed_.assign(values(), false);
    copies_.assign(nodes(), kNone);
    repeatable_.assign(nodes(), false);
    runs_forward_.assign(nodes(), false);
    for (NodeId id : forward_) runs_forward_[at(id)] = true;
    find_readers();
    for (NodeId id : forward_) repeatable_[at(id)] = can_be_repeated(id);
  }

  int64_t run() {
    for (NodeId id : backward_) {
      order_ = graph_.node(id).order;
      for (size_t i = 0; i < graph_.node(id).inputs.size(); ++i) {
        const ValueId again = repeated(graph_.node(id).inputs[i]);
        graph_.node(id).inputs[i] = again;  // `repeated` adds nodes, which moves them all
      }
    }
    return added_;
  }

 private:
  static size_t at(int32_t id) { return static_cast<size_t>(id); }
  size_t values() const { return static_cast<size_t>(graph_.value_count()); }
  size_t nodes() const { return static_cast<size_t>(graph_.node_count()); }

  RecomputeLevel level_of(const Node& node) const {
    const int64_t layer = layer_of(node.path);
    const bool known = layer >= 0 && layer < static_cast<int64_t>(levels_.size());
    return known ? levels_[static_cast<size_t>(layer)] : RecomputeLevel::none;
  }

  // What a value is a view of, through all views: the bytes that would be kept.
  ValueId base_of(ValueId id) const {
    for (const Node* node = graph_.producer(id); node != nullptr && node->op->traits.view; node = graph_.producer(id))
      id = node->inputs[0];
    return id;
  }

  // Values that lead from one layer to another, or out of the program, are kept: they are what all else is made from.
  void find_readers() {
    for (NodeId id : forward_) {
      const Node& node = graph_.node(id);
      for (ValueId input : node.inputs) {
        const ValueId base = base_of(input);
        const Node* producer = graph_.producer(base);
        if (producer == nullptr || layer_of(producer->path) == layer_of(node.path)) continue;
        crosses_[at(base)] = true;
      }
    }
    for (NodeId id : backward_)
      for (ValueId input : graph_.node(id).inputs) needed_[at(base_of(input))] = true;
    const std::vector<bool> escapes = graph_.escapes();
    for (size_t i = 0; i < escapes.size(); ++i)
      if (escapes[i]) crosses_[at(base_of(static_cast<ValueId>(i)))] = true;
  }

  // Nodes are asked in schedule order, so what is said of a node's inputs is known.
  bool can_be_repeated(NodeId id) const {
    const Node& node = graph_.node(id);
    const RecomputeLevel level = level_of(node);
    if (level == RecomputeLevel::none) return false;
    if (node.op->traits.view) return true;
    if (std::ranges::any_of(node.outputs, [&](ValueId output) { return crosses_[at(output)]; })) return false;
    if (level == RecomputeLevel::full) return true;
    return !node.op->traits.product &&
           std::ranges::all_of(node.inputs, [&](ValueId input) { return will_be_there(input); });
  }

  // Whether a value is kept, or made again, whatever is decided for its readers.
  bool will_be_there(ValueId id) const {
    const ValueId base = base_of(id);
    const NodeId producer = graph_.value(base).producer;
    return producer == kNone || crosses_[at(base)] || needed_[at(base)] || repeatable_[at(producer)];
  }

  // The value as the backward pass finds it: itself where it is kept.
  ValueId repeated(ValueId id) {
    const NodeId producer = graph_.value(id).producer;
    if (producer == kNone || !runs_forward_[at(producer)]) return id;
    const NodeId origin = graph_.value(base_of(id)).producer;
    if (origin == kNone || !repeatable_[at(origin)]) return id;
    if (copies_[at(producer)] == kNone) copies_[at(producer)] = copy_of(producer);
    return graph_.node(copies_[at(producer)]).outputs[at(graph_.value(id).output)];
  }

  NodeId copy_of(NodeId id) {
    std::vector<ValueId> inputs = graph_.node(id).inputs;
    for (ValueId& input : inputs) input = repeated(input);
    const Node& node = graph_.node(id);
    std::vector<Type> types;
    for (ValueId output : node.outputs) types.push_back(graph_.type(output));
    ++added_;
    return graph_.add_node(*node.op, std::move(inputs), node.attributes, std::move(types), node.path, order_);
  }

  Graph& graph_;
  std::span<const RecomputeLevel> levels_;
  std::vector<NodeId> schedule_;
  std::span<const NodeId> forward_, backward_;  // of the schedule
  std::vector<bool> crosses_, needed_;          // by value, of what views are views of
  std::vector<bool> runs_forward_;              // by node
  std::vector<bool> repeatable_;                // by node
  std::vector<NodeId> copies_;                  // by node
  int64_t order_ = 0;                           // of the reader that is looked at: copies run right before it
  int64_t added_ = 0;
};

}  // namespace

int64_t layer_of(std::string_view path) {
  while (!path.empty()) {
    const std::string_view part = path.substr(0, path.find('.'));
    int64_t layer = 0;
    const auto [end, error] = std::from_chars(part.begin(), part.end(), layer);
    if (error == std::errc() && end == part.end() && layer >= 0) return layer;
    path.remove_prefix(std::min(path.size(), part.size() + 1));
  }
  return kNone;
}

int64_t recompute(Graph& graph, ValueId loss, std::span<const RecomputeLevel> levels) {
  if (graph.producer(loss) == nullptr ||
      std::ranges::all_of(levels, [](RecomputeLevel level) { return level == RecomputeLevel::none; }))
    return 0;
  return Recomputation(graph, loss, levels).run();
}

}  // namespace ingot
