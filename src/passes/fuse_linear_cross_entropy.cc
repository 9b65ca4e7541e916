#include "passes/fuse_linear_cross_entropy.h"

#include <cmath>

#include "ops/cast.h"
#include "ops/cross_entropy.h"
#include "ops/linear_cross_entropy.h"
#include "ops/matmul.h"
#include "ops/scale.h"
#include "ops/tanh.h"
#include "passes/rewriter.h"

namespace ingot {
namespace {

constexpr std::string_view kPattern = "linear_cross_entropy";

// Where a soft cap begins, cap·tanh(x / cap) with `logits` its end: x, and the cap; x kNone where there is none.
std::pair<ValueId, double> match_softcap(const Rewriter& rewriter, ValueId logits) {
  const auto factor = [&](NodeId id) { return rewriter.node(id).attributes.as<ScaleAttributes>().factor; };
  const NodeId outer = rewriter.producer(logits, kScale);
  if (outer == kNone || factor(outer) <= 0) return {kNone, 0};
  const NodeId tanh = rewriter.producer(rewriter.node(outer).inputs[0], kTanh);
  if (tanh == kNone || rewriter.only_reader(rewriter.node(outer).inputs[0]) != outer) return {kNone, 0};
  const NodeId inner = rewriter.producer(rewriter.node(tanh).inputs[0], kScale);
  if (inner == kNone || rewriter.only_reader(rewriter.node(tanh).inputs[0]) != tanh) return {kNone, 0};
  const double cap = factor(outer);
  if (std::abs(factor(inner) * cap - 1) > 1e-12) return {kNone, 0};
  return {rewriter.node(inner).inputs[0], cap};
}

// The product that the logits are, through views, casts and one soft cap that nothing else reads.
NodeId logits_product(const Rewriter& rewriter, ValueId logits, double& softcap, std::string& problem) {
  while (true) {
    const NodeId id = rewriter.producer(logits);
    if (rewriter.escapes(logits)) problem = "the logits are an output";
    if (problem.empty() && rewriter.readers(logits).size() != 1) problem = "the logits are read elsewhere";
    if (problem.empty() && id == kNone) problem = "the logits are no product";
    if (!problem.empty()) return kNone;
    const Node& node = rewriter.node(id);
    const auto [inside, cap] = match_softcap(rewriter, logits);
    if (inside != kNone && softcap == 0) {
      softcap = cap;
      logits = inside;
    } else if (rewriter.is(id, kMatmul)) {
      if (rewriter.shape(node.inputs[1]).rank() == 2 && !node.attributes.as<MatmulAttributes>().transpose_a) return id;
      problem = "the logits are no product with one matrix";
    } else if (!node.op->traits.view && !rewriter.is(id, kCast)) {
      problem = fmt::format("{} stands between the product and the loss", node.op->name);
    } else {
      logits = node.inputs[0];
    }
  }
}

bool fuse(Rewriter& rewriter, PassContext& context, NodeId id) {
  const Node loss = rewriter.node(id);
  std::string problem;
  double softcap = 0;
  const NodeId product = logits_product(rewriter, loss.inputs[0], softcap, problem);
  if (product != kNone) {
    // A view that mixes rows and columns is no logits of the product's rows.
    const Shape& logits = rewriter.shape(rewriter.node(product).outputs[0]);
    if (logits[-1] != rewriter.shape(loss.inputs[0])[-1]) problem = "the logits are not the product's rows";
  }
  if (!problem.empty()) {
    context.missed(kPattern, loss.path, problem);
    return false;
  }
  if (!context.allowed(kPattern, loss.path)) return false;
  const Node matmul = rewriter.node(product);
  const int64_t rows = rewriter.shape(loss.inputs[1])[0];
  const ValueId x = rewriter.reshaped(matmul.inputs[0], {rows, rewriter.shape(matmul.inputs[0])[-1]}, id);
  rewriter.replace(
      loss.outputs[0],
      rewriter.insert_value(kLinearCrossEntropy, {x, matmul.inputs[1], loss.inputs[1], loss.inputs[2]},
                            LinearCrossEntropyAttributes{matmul.attributes.as<MatmulAttributes>().transpose_b, softcap},
                            id));
  rewriter.refresh();
  context.applied(kPattern, loss.path);
  return true;
}

}  // namespace

bool fuse_linear_cross_entropy(Graph& graph, PassContext& context) {
  Rewriter rewriter(graph);
  bool changed = false;
  for (NodeId id : rewriter.schedule())
    if (rewriter.live(id) && rewriter.is(id, kCrossEntropy)) changed = fuse(rewriter, context, id) || changed;
  return changed;
}

}  // namespace ingot
