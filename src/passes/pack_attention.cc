#include "passes/pack_attention.h"

#include "ops/attention.h"
#include "ops/attention_packed.h"
#include "ops/reshape.h"
#include "ops/rope.h"
#include "passes/rewriter.h"

namespace ingot {
namespace {

constexpr std::string_view kPattern = "attention_packed";

// Where an operand of attention comes from: a part of a value, perhaps rotated.
struct Operand {
  NodeId part_of = kNone;  // the split
  int32_t part = 0;
  NodeId rope = kNone;
};

Operand trace(const Rewriter& rewriter, ValueId value, std::string& problem) {
  Operand operand;
  while (true) {
    const NodeId id = rewriter.producer(value);
    if (id == kNone) break;
    const Node& node = rewriter.node(id);
    if (node.op->traits.part.has_value()) {
      operand.part_of = id;
      operand.part = rewriter.graph().value(value).output;
      return operand;
    }
    if (rewriter.is(id, kRope) && operand.rope == kNone)
      operand.rope = id;
    else if (!node.op->traits.view) {
      problem = fmt::format("{} stands before attention", node.op->name);
      return operand;
    }
    value = node.inputs[0];
  }
  problem = "queries, keys and values do not come from one product";
  return operand;
}

bool same_rotation(const Rewriter& rewriter, NodeId a, NodeId b) {
  if (a == kNone || b == kNone) return a == b;
  const Node &x = rewriter.node(a), &y = rewriter.node(b);
  return x.inputs[1] == y.inputs[1] && x.attributes == y.attributes &&
         x.attributes.as<RopeAttributes>().rotated_heads == -1;
}

// The value whose three parts, along the last axis, are queries, keys and values; kNone and the problem where not.
ValueId packed_source(const Rewriter& rewriter, const Node& attention, Operand (&operands)[3], std::string& problem) {
  int64_t start = 0;
  for (size_t i = 0; i < 3; ++i) {
    operands[i] = trace(rewriter, attention.inputs[i], problem);
    if (!problem.empty()) return kNone;
    if (operands[i].part_of != operands[0].part_of) {
      problem = "queries, keys and values do not come from one product";
      return kNone;
    }
    const Node& split = rewriter.node(operands[i].part_of);
    const PartOf part = (*split.op->traits.part)(split.attributes, operands[i].part);
    const Shape& heads = rewriter.shape(attention.inputs[i]);
    const Shape& piece = rewriter.shape(split.outputs[static_cast<size_t>(operands[i].part)]);
    if (piece.rank() != 3 || part.axis != 2 || part.start != start || piece[2] != heads[2] * heads[3] ||
        piece[0] != heads[0] || piece[1] != heads[1]) {
      problem = "queries, keys and values do not lie one behind the other";
      return kNone;
    }
    start += piece[2];
  }
  const ValueId source = rewriter.node(operands[0].part_of).inputs[0];
  if (rewriter.shape(source)[2] != start)
    problem = "the product has more parts than queries, keys and values";
  else if (!same_rotation(rewriter, operands[0].rope, operands[1].rope) || operands[2].rope != kNone)
    problem = "queries and keys are not rotated alike";
  return problem.empty() ? source : kNone;
}

void rewrite(Rewriter& rewriter, NodeId id, ValueId qkv, NodeId rope) {
  const Node attention = rewriter.node(id);
  const Shape q = rewriter.shape(attention.inputs[0]), rows = rewriter.shape(qkv);
  const int64_t kv_heads = rewriter.shape(attention.inputs[1])[2];
  if (rope != kNone) {
    RopeAttributes rotation = rewriter.node(rope).attributes.as<RopeAttributes>();
    rotation.rotated_heads = q[2] + kv_heads;
    const ValueId heads = rewriter.reshaped(qkv, {q[0], q[1], q[2] + 2 * kv_heads, q[3]}, id);
    const ValueId positions = rewriter.node(rope).inputs[1];
    const ValueId rotated = rewriter.insert_value(kRope, {heads, positions}, std::move(rotation), id);
    qkv = rewriter.reshaped(rotated, rows, id);
  }
  const auto& a = attention.attributes.as<AttentionAttributes>();
  const AttentionPackedAttributes attributes{q[2], kv_heads, q[3], a.scale, a.window, a.dropout, a.stream, a.softcap};
  const NodeId packed = rewriter.insert(kAttentionPacked, {qkv, attention.inputs[3]}, attributes, id);
  const ValueId out = rewriter.node(packed).outputs[0];
  const std::vector<NodeId> readers = rewriter.readers(attention.outputs[0]);
  for (NodeId reader : readers)
    if (rewriter.is(reader, kReshape) && rewriter.shape(rewriter.node(reader).outputs[0]) == rewriter.shape(out))
      rewriter.replace(rewriter.node(reader).outputs[0], out);
  rewriter.replace(attention.outputs[0], rewriter.reshaped(out, q, id));
  rewriter.replace(attention.outputs[1], rewriter.node(packed).outputs[1]);
}

}  // namespace

bool pack_attention(Graph& graph, PassContext& context) {
  Rewriter rewriter(graph);
  bool changed = false;
  for (NodeId id : rewriter.schedule()) {
    if (!rewriter.live(id) || !rewriter.is(id, kAttention)) continue;
    const std::string path = rewriter.node(id).path;
    std::string problem;
    Operand operands[3];
    const ValueId qkv = packed_source(rewriter, rewriter.node(id), operands, problem);
    if (qkv == kNone) {
      context.missed(kPattern, path, problem);
      continue;
    }
    if (!context.allowed(kPattern, path)) continue;
    rewrite(rewriter, id, qkv, operands[0].rope);
    rewriter.refresh();
    context.applied(kPattern, path);
    changed = true;
  }
  return changed;
}

}  // namespace ingot
