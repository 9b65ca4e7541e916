#include "merge_scales.h"

#include "ops/scale.h"
#include "passes/rewriter.h"

namespace ingot {

bool merge_scales(Graph& graph, PassContext& context) {
  bool changed = false;
  for (NodeId id : graph.schedule()) {
    const Node outer = graph.node(id);  // a copy: adding a node moves the others
    const Node* inner = outer.inputs.empty() ? nullptr : graph.producer(outer.inputs[0]);
    if (outer.op != &kScale || inner == nullptr || inner->op != &kScale) continue;
    const double factor =
        outer.attributes.as<ScaleAttributes>().factor * inner->attributes.as<ScaleAttributes>().factor;
    const NodeId merged = graph.add_node(kScale, inner->inputs, ScaleAttributes{factor}, {graph.type(outer.outputs[0])},
                                         outer.path, outer.order);
    graph.replace_uses(outer.outputs[0], graph.node(merged).outputs[0]);
    context.applied("merge_scales", outer.path);
    changed = true;
  }
  graph.remove_dead_nodes();
  return changed;
}

}  // namespace ingot
