#include "passes/fuse_glu.h"

#include "ops/glu.h"
#include "ops/mul.h"
#include "passes/rewriter.h"

namespace ingot {
namespace {

constexpr std::string_view kPattern = "glu";

// The half of a value along its last axis that `x` is: which one and of what.
struct Half {
  ValueId whole = kNone;
  int which = 0;
};
Half half_of(const Rewriter& rewriter, ValueId x) {
  const NodeId id = rewriter.producer(x);
  if (id == kNone || !rewriter.node(id).op->traits.part.has_value()) return {};
  const Node& node = rewriter.node(id);
  const PartOf part = (*node.op->traits.part)(node.attributes, rewriter.graph().value(x).output);
  const ValueId whole = node.inputs[0];
  const Shape &all = rewriter.shape(whole), &own = rewriter.shape(x);
  if (part.axis != all.rank() - 1 || all[-1] != 2 * own[-1] || part.start % own[-1] != 0) return {};
  return {whole, static_cast<int>(part.start / own[-1])};
}

// activation(gate) · up with the operand `which` of the product as the activation.
bool fuse(Rewriter& rewriter, PassContext& context, NodeId id, size_t which) {
  const Node product = rewriter.node(id);
  const NodeId activation = rewriter.producer(product.inputs[which]);
  if (activation == kNone || rewriter.node(activation).inputs.size() != 1) return false;
  const Node gate = rewriter.node(activation);
  Type type = rewriter.type(gate.outputs[0]);
  if (!gate.op->traits.elementwise || type.shape.rank() == 0) return false;
  type.shape[-1] *= 2;
  const GluAttributes attributes{std::string(gate.op->name)};
  const bool known = gate.attributes == Attributes() && kGlu.infer(std::span(&type, 1), attributes).ok() &&
                     gate.op->gradient != nullptr;
  if (!known || !(rewriter.shape(gate.outputs[0]) == rewriter.shape(product.inputs[1 - which]))) return false;

  const Half first = half_of(rewriter, gate.inputs[0]), second = half_of(rewriter, product.inputs[1 - which]);
  std::string problem;
  if (first.whole == kNone || first.whole != second.whole)
    problem = "gate and up do not come from one product";
  else if (first.which != 0 || second.which != 1)
    problem = "the gate is not the first half";
  else if (rewriter.only_reader(gate.outputs[0]) != id)
    problem = "the activated gate is read elsewhere";
  if (!problem.empty()) {
    context.missed(kPattern, product.path, problem);
    return false;
  }
  if (!context.allowed(kPattern, product.path)) return false;
  rewriter.replace(product.outputs[0], rewriter.insert_value(kGlu, {first.whole}, attributes, id));
  rewriter.refresh();
  context.applied(kPattern, product.path);
  return true;
}

}  // namespace

bool fuse_glu(Graph& graph, PassContext& context) {
  Rewriter rewriter(graph);
  bool changed = false;
  for (NodeId id : rewriter.schedule()) {
    if (!rewriter.live(id) || !rewriter.is(id, kMul)) continue;
    changed = fuse(rewriter, context, id, 0) || fuse(rewriter, context, id, 1) || changed;
  }
  return changed;
}

}  // namespace ingot
