#include <algorithm>

#include "graph/storage.h"
#include "ops/broadcast_to.h"
#include "ops/cast.h"
#include "ops/concat.h"
#include "ops/matmul.h"
#include "ops/repeat_interleave.h"
#include "ops/reshape.h"
#include "ops/scale.h"
#include "ops/slice.h"
#include "ops/sum.h"
#include "ops/transpose.h"
#include "passes/fold_rules.h"

namespace ingot {
namespace {

const Shape& out_shape(const Rewriter& rewriter, NodeId id) {
  return rewriter.shape(rewriter.node(id).outputs[0]);
}

ValueId fold_reshape(Rewriter& rewriter, NodeId id) {
  const ValueId x = rewriter.node(id).inputs[0];
  const Shape to = out_shape(rewriter, id);
  if (rewriter.shape(x) == to) return x;
  return rewriter.producer(x, kReshape) == kNone ? kNone : rewriter.reshaped(x, to, id);
}

ValueId fold_transpose(Rewriter& rewriter, NodeId id) {
  const Node& node = rewriter.node(id);
  const auto permutation = node.attributes.as<TransposeAttributes>().permutation;
  const ValueId x = node.inputs[0];
  if (std::ranges::is_sorted(permutation)) return x;
  return rewriter.producer(x, kTranspose) == kNone ? kNone : rewriter.transposed(x, permutation, id);
}

// A cast that changes nothing, or that undoes the widening of what is narrow already.
ValueId fold_cast(Rewriter& rewriter, NodeId id) {
  const ValueId x = rewriter.node(id).inputs[0];
  const DType to = rewriter.type(rewriter.node(id).outputs[0]).dtype;
  if (rewriter.type(x).dtype == to) return x;
  const NodeId inner = rewriter.producer(x, kCast);
  if (inner == kNone || !is_narrow(to) || rewriter.type(x).dtype != DType::f32) return kNone;
  const ValueId origin = rewriter.node(inner).inputs[0];
  return rewriter.type(origin).dtype == to ? origin : kNone;
}

// Whether a transpose swaps the last two axes and no others.
bool swaps_last_two(const std::vector<int64_t>& permutation) {
  auto plain = permutation;
  if (plain.size() < 2) return false;
  std::swap(plain[plain.size() - 1], plain[plain.size() - 2]);
  return std::ranges::is_sorted(plain);
}

// A transposed operand becomes a flag of the product.
ValueId fold_matmul(Rewriter& rewriter, NodeId id) {
  const Node node = rewriter.node(id);
  auto flags = node.attributes.as<MatmulAttributes>();
  auto inputs = node.inputs;
  bool changed = false;
  for (size_t i = 0; i < 2; ++i) {
    const NodeId transpose = rewriter.producer(inputs[i], kTranspose);
    if (transpose == kNone ||
        !swaps_last_two(rewriter.node(transpose).attributes.as<TransposeAttributes>().permutation))
      continue;
    MatmulAttributes turned = flags;
    bool& flag = i == 0 ? turned.transpose_a : turned.transpose_b;
    flag = !flag;
    auto sources = inputs;
    sources[i] = rewriter.node(transpose).inputs[0];
    const auto extents = matmul_extents(rewriter.shape(sources[0]), rewriter.shape(sources[1]), turned);
    if (!extents.ok()) continue;
    flags = turned;
    inputs = sources;
    changed = true;
  }
  return changed ? rewriter.insert_value(kMatmul, inputs, flags, id) : kNone;
}

ValueId fold_broadcast(Rewriter& rewriter, NodeId id) {
  const ValueId x = rewriter.node(id).inputs[0];
  return rewriter.shape(x) == out_shape(rewriter, id) ? x : kNone;
}

// The sum over all axes along which a value was repeated is the value times the number of repeats.
ValueId sum_of_broadcast(Rewriter& rewriter, NodeId id) {
  const auto axes = rewriter.node(id).attributes.as<SumAttributes>().axes;
  const NodeId from = rewriter.producer(rewriter.node(id).inputs[0], kBroadcastTo);
  if (from == kNone) return kNone;
  const ValueId x = rewriter.node(from).inputs[0];
  const Shape &wide = out_shape(rewriter, from), &narrow = rewriter.shape(x);
  Shape aligned = wide;
  double repeats = 1;
  for (int axis = 0; axis < wide.rank(); ++axis) {
    const int own = axis - (wide.rank() - narrow.rank());
    aligned[axis] = own < 0 ? 1 : narrow[own];
    if (aligned[axis] == wide[axis]) continue;
    if (!std::ranges::binary_search(axes, axis)) return kNone;
    repeats *= static_cast<double>(wide[axis]);
  }
  const ValueId total = rewriter.insert_value(kSum, {rewriter.reshaped(x, aligned, id)}, SumAttributes{axes}, id);
  return rewriter.insert_value(kScale, {total}, ScaleAttributes{repeats}, id);
}

ValueId fold_sum(Rewriter& rewriter, NodeId id) {
  const Node& node = rewriter.node(id);
  const ValueId x = node.inputs[0];
  const auto& axes = node.attributes.as<SumAttributes>().axes;
  const Shape from = rewriter.shape(x), to = out_shape(rewriter, id);
  if (std::ranges::all_of(axes, [&](int64_t axis) { return from[static_cast<int>(axis)] == 1; }))
    return rewriter.reshaped(x, to, id);
  return sum_of_broadcast(rewriter, id);
}

// An elementwise op repeats its inputs by itself.
ValueId broadcast_operand(Rewriter& rewriter, NodeId id) {
  if (!rewriter.node(id).op->traits.elementwise) return kNone;
  for (size_t i = 0; i < rewriter.node(id).inputs.size(); ++i) {
    const Node& node = rewriter.node(id);
    const NodeId from = rewriter.producer(node.inputs[i], kBroadcastTo);
    if (from == kNone) continue;
    auto inputs = node.inputs;
    inputs[i] = rewriter.node(from).inputs[0];
    std::vector<Type> types;
    for (ValueId input : inputs) types.push_back(rewriter.type(input));
    const auto inferred = node.op->infer(types, node.attributes);
    if (inferred.ok() && (*inferred)[0] == rewriter.type(node.outputs[0]))
      return rewriter.insert_value(*node.op, std::move(inputs), node.attributes, id);
  }
  return kNone;
}

ValueId fold_repeat(Rewriter& rewriter, NodeId id) {
  const Node& node = rewriter.node(id);
  return node.attributes.as<RepeatInterleaveAttributes>().repeats == 1 ? node.inputs[0] : kNone;
}

// A part (of a split or slice) that is all there is.
ValueId whole_part(Rewriter& rewriter, NodeId id) {
  const Node& node = rewriter.node(id);
  if (!node.op->traits.part.has_value() || node.outputs.size() != 1) return kNone;
  return rewriter.type(node.inputs[0]) == rewriter.type(node.outputs[0]) ? node.inputs[0] : kNone;
}

// All parts of a value joined again in their order.
ValueId join_of_parts(Rewriter& rewriter, NodeId id) {
  const Node& node = rewriter.node(id);
  if (!node.op->traits.join.has_value()) return kNone;
  if (node.inputs.size() == 1) return node.inputs[0];
  const int64_t axis = (*node.op->traits.join)(node.attributes);
  ValueId whole = kNone;
  int64_t start = 0;
  for (ValueId input : node.inputs) {
    const NodeId from = rewriter.producer(input);
    if (from == kNone || !rewriter.node(from).op->traits.part.has_value()) return kNone;
    const Node& source = rewriter.node(from);
    const PartOf part = (*source.op->traits.part)(source.attributes, rewriter.graph().value(input).output);
    if (part.axis != axis || part.start != start || (whole != kNone && source.inputs[0] != whole)) return kNone;
    whole = source.inputs[0];
    start += rewriter.shape(input)[static_cast<int>(axis)];
  }
  return rewriter.type(whole) == rewriter.type(node.outputs[0]) ? whole : kNone;
}

}  // namespace

std::span<const FoldRule> layout_rules() {
  static const FoldRule kRules[] = {
      {&kReshape, fold_reshape},         {&kTranspose, fold_transpose},   {&kCast, fold_cast},
      {&kMatmul, fold_matmul},           {&kBroadcastTo, fold_broadcast}, {&kSum, fold_sum},
      {&kRepeatInterleave, fold_repeat}, {nullptr, broadcast_operand},    {nullptr, whole_part},
      {nullptr, join_of_parts},
  };
  return kRules;
}

}  // namespace ingot
