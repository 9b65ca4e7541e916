#include "passes/fold.h"

#include "passes/fold_rules.h"

namespace ingot {
namespace {

// Parts of a join that are just what was joined.
bool split_of_join(Rewriter& rewriter, NodeId id) {
  const Node node = rewriter.node(id);
  if (!node.op->traits.part.has_value()) return false;
  const NodeId from = rewriter.producer(node.inputs[0]);
  if (from == kNone || !rewriter.node(from).op->traits.join.has_value()) return false;
  const Node& join = rewriter.node(from);
  const int64_t axis = (*join.op->traits.join)(join.attributes);
  bool changed = false;
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const PartOf part = (*node.op->traits.part)(node.attributes, static_cast<int32_t>(i));
    if (part.axis != axis) return false;
    int64_t start = 0;
    for (ValueId joined : join.inputs) {
      if (start == part.start && rewriter.type(joined) == rewriter.type(node.outputs[i]) &&
          (!rewriter.readers(node.outputs[i]).empty() || rewriter.escapes(node.outputs[i]))) {
        rewriter.replace(node.outputs[i], joined);
        changed = true;
      }
      start += rewriter.shape(joined)[static_cast<int>(axis)];
    }
  }
  return changed;
}

bool apply_rules(Rewriter& rewriter, NodeId id) {
  for (const auto rules : {arithmetic_rules(), layout_rules()})
    for (const FoldRule& rule : rules) {
      if (rule.op != nullptr && !rewriter.is(id, *rule.op)) continue;
      const ValueId simpler = rule.apply(rewriter, id);
      if (simpler == kNone) continue;
      rewriter.replace(rewriter.node(id).outputs[0], simpler);
      return true;
    }
  return split_of_join(rewriter, id);
}

}  // namespace

bool fold(Graph& graph, PassContext&) {
  bool changed = false;
  for (bool again = true; again;) {
    again = false;
    Rewriter rewriter(graph);
    for (NodeId id : rewriter.schedule()) again = apply_rules(rewriter, id) || again;
    graph.remove_dead_nodes();
    changed = changed || again;
  }
  return changed;
}

}  // namespace ingot
