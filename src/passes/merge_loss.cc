#include "passes/merge_loss.h"

#include "ops/linear_cross_entropy.h"
#include "ops/linear_cross_entropy_grad.h"
#include "passes/rewriter.h"

namespace ingot {
namespace {

NodeId gradient_beside(const Rewriter& rewriter, NodeId loss) {
  const Node& node = rewriter.node(loss);
  for (NodeId id : rewriter.readers(node.inputs[0])) {
    if (!rewriter.is(id, kLinearCrossEntropyGrad)) continue;
    const Node& gradient = rewriter.node(id);
    const bool same = gradient.attributes == node.attributes &&
                      std::equal(node.inputs.begin(), node.inputs.end(), gradient.inputs.begin());
    if (same && !rewriter.depends_on(gradient.inputs[4], loss)) return id;
  }
  return kNone;
}

}  // namespace

bool merge_loss(Graph& graph, PassContext& context) {
  Rewriter rewriter(graph);
  bool changed = false;
  for (NodeId id : rewriter.schedule()) {
    if (!rewriter.live(id) || !rewriter.is(id, kLinearCrossEntropy)) continue;
    const NodeId gradient = gradient_beside(rewriter, id);
    if (gradient == kNone) continue;
    rewriter.replace(rewriter.node(id).outputs[0], rewriter.node(gradient).outputs[0]);
    context.applied("merge_loss", rewriter.node(id).path);
    rewriter.refresh();
    changed = true;
  }
  return changed;
}

}  // namespace ingot
