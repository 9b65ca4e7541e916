#include "passes/fuse_accumulate.h"

#include "ops/add.h"
#include "ops/concat.h"
#include "ops/embedding_grad.h"
#include "ops/matmul.h"
#include "ops/matmul_add.h"
#include "ops/split.h"
#include "passes/rewriter.h"

namespace ingot {
namespace {

// accumulator + gradient, where the gradient has just been computed and nothing else reads it.
struct Addition {
  ValueId accumulator = kNone, gradient = kNone;
};

bool is_state(const Rewriter& rewriter, ValueId id) {
  if (rewriter.producer(id) != kNone) return false;
  return rewriter.graph().source_of(id)->kind == SourceKind::state;
}

// A weight's gradient is a product over the rows, so its first operand is given transposed. Other products that are
// added to something are a layer's result and a residual, whose sum fuse_epilogue makes.
bool is_weight_product(const Rewriter& rewriter, NodeId id) {
  return rewriter.is(id, kMatmul) && rewriter.node(id).attributes.as<MatmulAttributes>().transpose_a &&
         rewriter.shape(rewriter.node(id).outputs[0]).rank() == 2;
}

bool is_embedding_gradient(const Rewriter& rewriter, NodeId id) {
  return rewriter.is(id, kEmbeddingGrad) && !rewriter.node(id).attributes.as<EmbeddingGradAttributes>().accumulate;
}

// Of the two operands the gradient that runs last and that `accepts` knows; both have the sum's type.
template <class Accepts>
Addition match_addition(const Rewriter& rewriter, NodeId add, const Accepts& accepts) {
  Addition best;
  int64_t latest = -1;
  for (size_t i = 0; i < 2; ++i) {
    const Node& node = rewriter.node(add);
    const ValueId gradient = node.inputs[i], accumulator = node.inputs[1 - i];
    const NodeId from = rewriter.producer(gradient);
    if (from == kNone || !accepts(from) || rewriter.only_reader(gradient) != add || gradient == accumulator) continue;
    if (!(rewriter.type(accumulator) == rewriter.type(node.outputs[0])) || rewriter.position(from) < latest) continue;
    if (rewriter.depends_on(accumulator, from)) continue;
    latest = rewriter.position(from);
    best = {accumulator, gradient};
  }
  return best;
}

bool fuse_product(Rewriter& rewriter, PassContext& context, NodeId add) {
  const auto [accumulator, gradient] =
      match_addition(rewriter, add, [&](NodeId id) { return is_weight_product(rewriter, id); });
  if (gradient == kNone || !context.allowed("matmul_add", rewriter.node(add).path)) return false;
  const NodeId id = rewriter.producer(gradient);
  const Node product = rewriter.node(id);
  rewriter.replace(
      rewriter.node(add).outputs[0],
      rewriter.insert_value(kMatmulAdd, {accumulator, product.inputs[0], product.inputs[1]}, product.attributes, id));
  context.applied("matmul_add", product.path);
  return true;
}

bool fuse_embedding(Rewriter& rewriter, PassContext& context, NodeId add) {
  const auto [accumulator, gradient] =
      match_addition(rewriter, add, [&](NodeId id) { return is_embedding_gradient(rewriter, id); });
  if (gradient == kNone || !context.allowed("embedding_grad", rewriter.node(add).path)) return false;
  const NodeId id = rewriter.producer(gradient);
  const Node rows = rewriter.node(id);
  EmbeddingGradAttributes attributes = rows.attributes.as<EmbeddingGradAttributes>();
  attributes.accumulate = true;
  rewriter.replace(
      rewriter.node(add).outputs[0],
      rewriter.insert_value(kEmbeddingGrad, {rows.inputs[0], rows.inputs[1], accumulator}, attributes, id));
  context.applied("embedding_grad", rows.path);
  return true;
}

// The product for several weights joined, whose parts are each added to a state: the states are joined instead.
bool fuse_joined_product(Rewriter& rewriter, PassContext& context, NodeId split) {
  const Node parts = rewriter.node(split);
  const NodeId id = rewriter.producer(parts.inputs[0]);
  if (id == kNone || !is_weight_product(rewriter, id) || rewriter.only_reader(parts.inputs[0]) != split) return false;
  if (parts.attributes.as<SplitAttributes>().axis != 0) return false;
  std::vector<ValueId> states;
  std::vector<NodeId> adds;
  for (ValueId part : parts.outputs) {
    const NodeId add = rewriter.only_reader(part);
    if (!rewriter.is(add, kAdd)) return false;
    const auto& inputs = rewriter.node(add).inputs;
    const ValueId state = inputs[0] == part ? inputs[1] : inputs[0];
    if (!is_state(rewriter, state) || !(rewriter.type(state) == rewriter.type(part))) return false;
    states.push_back(state);
    adds.push_back(add);
  }
  if (!context.allowed("matmul_add", parts.path)) return false;
  const Node product = rewriter.node(id);
  const ValueId joined = rewriter.insert_value(kConcat, states, ConcatAttributes{0}, id);
  const ValueId total =
      rewriter.insert_value(kMatmulAdd, {joined, product.inputs[0], product.inputs[1]}, product.attributes, id);
  const NodeId totals = rewriter.insert(kSplit, {total}, parts.attributes, split);
  for (size_t i = 0; i < adds.size(); ++i)
    rewriter.replace(rewriter.node(adds[i]).outputs[0], rewriter.node(totals).outputs[i]);
  context.applied("matmul_add", product.path);
  return true;
}

}  // namespace

bool fuse_accumulate(Graph& graph, PassContext& context) {
  Rewriter rewriter(graph);
  bool changed = false;
  for (NodeId id : rewriter.schedule()) {
    if (!rewriter.live(id)) continue;
    const bool fused = rewriter.is(id, kAdd)
                           ? fuse_embedding(rewriter, context, id) || fuse_product(rewriter, context, id)
                           : rewriter.is(id, kSplit) && fuse_joined_product(rewriter, context, id);
    if (!fused) continue;
    rewriter.refresh();
    changed = true;
  }
  return changed;
}

}  // namespace ingot
