#include "passes/fuse_attention.h"

#include <limits>

#include "ops/attention.h"
#include "ops/cast.h"
#include "ops/dropout.h"
#include "ops/mask_scores.h"
#include "ops/matmul.h"
#include "ops/repeat_interleave.h"
#include "ops/scale.h"
#include "ops/softmax.h"
#include "ops/tanh.h"
#include "ops/transpose.h"
#include "passes/rewriter.h"

namespace ingot {
namespace {

constexpr std::string_view kPattern = "attention";
const std::vector<int64_t> kSwapHeads{0, 2, 1, 3};  // [B,T,H,D] <-> [B,H,T,D]

// What stands around a softmax, if it is that of an attention.
struct Match {
  NodeId score_product = kNone, mask = kNone, value_product = kNone;
  ValueId v = kNone;  // as the product has it, [B,H,T,D]
  AttentionAttributes attributes;
  std::string problem;  // why it is not fused although it looks like attention
};

// Notes where a value between the two products, which will not exist any more, is read by something else.
void check_inside(const Rewriter& rewriter, ValueId value, std::string_view what, Match& match) {
  if (!match.problem.empty()) return;
  if (rewriter.escapes(value))
    match.problem = fmt::format("the {} are an output", what);
  else if (rewriter.readers(value).size() != 1)
    match.problem = fmt::format("the {} are read elsewhere", what);
}

// From softmax's input up to the product of queries and keys; false where there is none.
bool match_scores(const Rewriter& rewriter, ValueId scores, Match& match) {
  while (true) {
    const NodeId id = rewriter.producer(scores);
    if (id == kNone) return false;
    check_inside(rewriter, scores, "scores", match);
    const Node& node = rewriter.node(id);
    if (rewriter.is(id, kMatmul)) {
      match.score_product = id;
      return rewriter.shape(scores).rank() == 4;
    }
    // A soft cap is cap · tanh(x / cap): what multiplies between the softmax and tanh. Masked after it, not before.
    const bool is_cap = rewriter.is(id, kTanh) && match.mask != kNone && match.attributes.softcap == 0;
    if (rewriter.is(id, kScale)) {
      match.attributes.scale *= node.attributes.as<ScaleAttributes>().factor;
    } else if (is_cap && match.attributes.scale > 0) {
      match.attributes.softcap = match.attributes.scale;
    } else if (rewriter.is(id, kMaskScores) && match.mask == kNone) {
      match.mask = id;
    } else if (!rewriter.is(id, kCast)) {
      if (match.problem.empty()) match.problem = fmt::format("{} stands between the scores and softmax", node.op->name);
      return match.mask != kNone;
    }
    scores = node.inputs[0];
  }
}

// From softmax's output down to the product with the values.
void match_weights(const Rewriter& rewriter, ValueId weights, Match& match) {
  while (match.problem.empty()) {
    check_inside(rewriter, weights, "weights", match);
    if (!match.problem.empty()) return;
    const NodeId id = rewriter.readers(weights)[0];
    const Node& node = rewriter.node(id);
    if (rewriter.is(id, kMatmul)) {
      if (node.inputs[0] != weights || !(node.attributes.as<MatmulAttributes>() == MatmulAttributes{}))
        match.problem = "the weights are not the first operand of a plain product";
      match.value_product = id;
      match.v = node.inputs[1];
      return;
    }
    if (rewriter.is(id, kDropout) && match.attributes.dropout == 0) {
      match.attributes.dropout = node.attributes.as<DropoutAttributes>().p;
      match.attributes.stream = node.attributes.as<DropoutAttributes>().stream;
    } else if (!rewriter.is(id, kCast)) {
      match.problem = fmt::format("{} stands between softmax and the values", node.op->name);
    }
    weights = node.outputs[0];
  }
}

void check_shapes(const Rewriter& rewriter, Match& match) {
  if (!match.problem.empty()) return;
  const Node& scores = rewriter.node(match.score_product);
  if (rewriter.shape(match.v).rank() != 4 || rewriter.shape(scores.inputs[1]).rank() != 4 ||
      scores.attributes.as<MatmulAttributes>().transpose_a)
    match.problem = "queries, keys and values are not [B,H,T,D]";
}

void check_mask(const Rewriter& rewriter, Match& match) {
  if (!match.problem.empty()) return;
  if (match.mask == kNone) {
    match.problem = "no causal mask on the scores";
    return;
  }
  const auto& mask = rewriter.node(match.mask).attributes.as<MaskScoresAttributes>();
  match.attributes.window = mask.window;
  if (!(mask.fill == -std::numeric_limits<double>::infinity())) match.problem = "masked scores are not minus infinity";
}

// An operand [B,H,T,D] of a product as [B,T,H,D]; key and value heads lose their repeats.
ValueId operand(Rewriter& rewriter, ValueId x, bool shared_heads, NodeId at) {
  const auto without_repeats = [&](ValueId value, int64_t axis) {
    const NodeId id = rewriter.producer(value, kRepeatInterleave);
    return shared_heads && id != kNone && rewriter.node(id).attributes.as<RepeatInterleaveAttributes>().axis == axis
               ? rewriter.node(id).inputs[0]
               : value;
  };
  return without_repeats(rewriter.transposed(without_repeats(x, 1), kSwapHeads, at), 2);
}

void rewrite(Rewriter& rewriter, const Match& match) {
  const NodeId at = match.value_product;
  const Node scores = rewriter.node(match.score_product);
  ValueId k = scores.inputs[1];
  if (!scores.attributes.as<MatmulAttributes>().transpose_b) k = rewriter.transposed(k, {0, 1, 3, 2}, at);
  const ValueId first_visible = rewriter.node(match.mask).inputs[1];
  const ValueId q4 = operand(rewriter, scores.inputs[0], false, at);
  ValueId k4 = operand(rewriter, k, true, at), v4 = operand(rewriter, match.v, true, at);
  if (!(rewriter.shape(k4) == rewriter.shape(v4))) {
    k4 = operand(rewriter, k, false, at);
    v4 = operand(rewriter, match.v, false, at);
  }
  const NodeId attention = rewriter.insert(kAttention, {q4, k4, v4, first_visible}, match.attributes, at);
  const ValueId out = rewriter.node(attention).outputs[0], old = rewriter.node(at).outputs[0];
  const std::vector<NodeId> readers = rewriter.readers(old);
  size_t left = readers.size();
  for (NodeId reader : readers) {
    if (!rewriter.is(reader, kTranspose) ||
        rewriter.node(reader).attributes.as<TransposeAttributes>().permutation != kSwapHeads)
      continue;
    rewriter.replace(rewriter.node(reader).outputs[0], out);
    --left;
  }
  if (left > 0 || rewriter.escapes(old)) rewriter.replace(old, rewriter.transposed(out, kSwapHeads, at));
}

bool fuse(Rewriter& rewriter, PassContext& context, NodeId softmax) {
  Match match;
  const std::string path = rewriter.node(softmax).path;
  if (!match_scores(rewriter, rewriter.node(softmax).inputs[0], match)) return false;
  match_weights(rewriter, rewriter.node(softmax).outputs[0], match);
  check_mask(rewriter, match);
  check_shapes(rewriter, match);
  if (!match.problem.empty()) {
    context.missed(kPattern, path, match.problem);
    return false;
  }
  if (!context.allowed(kPattern, path)) return false;
  rewrite(rewriter, match);
  rewriter.refresh();
  context.applied(kPattern, path);
  return true;
}

}  // namespace

bool fuse_attention(Graph& graph, PassContext& context) {
  Rewriter rewriter(graph);
  bool changed = false;
  for (NodeId id : rewriter.schedule())
    if (rewriter.live(id) && rewriter.is(id, kSoftmax)) changed = fuse(rewriter, context, id) || changed;
  return changed;
}

}  // namespace ingot
