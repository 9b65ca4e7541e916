#include <algorithm>
#include <cmath>

#include "ops/add.h"
#include "ops/add_scalar.h"
#include "ops/cast.h"
#include "ops/constant.h"
#include "ops/div.h"
#include "ops/dropout.h"
#include "ops/interpret.h"
#include "ops/mul.h"
#include "ops/scale.h"
#include "ops/sub.h"
#include "passes/fold_rules.h"

namespace ingot {

std::optional<double> uniform_constant(const Rewriter& rewriter, ValueId x) {
  const NodeId id = rewriter.producer(x, kConstant);
  if (id == kNone) return std::nullopt;
  const auto& values = rewriter.node(id).attributes.as<ConstantAttributes>().values;
  if (values.size() != 1) return std::nullopt;
  return values[0];
}

namespace {

// A constant larger than this is better computed when the program runs than held in it.
constexpr int64_t kLargestFoldedConstant = 4096;

ValueId evaluate_constants(Rewriter& rewriter, NodeId id) {
  const Node node = rewriter.node(id);
  if (node.inputs.empty() || node.outputs.size() != 1 || node.op->traits.random || !node.op->traits.foldable)
    return kNone;
  const Type type = rewriter.type(node.outputs[0]);
  if (type.packed_bytes > 0 || type.shape.elements() > kLargestFoldedConstant) return kNone;
  std::vector<Type> types;
  std::vector<RefTensor> tensors;
  for (ValueId input : node.inputs) {
    const NodeId from = rewriter.producer(input, kConstant);
    if (from == kNone || rewriter.shape(input).elements() > kLargestFoldedConstant) return kNone;
    types.push_back(rewriter.type(input));
    tensors.push_back(evaluate_op(kConstant, rewriter.node(from).attributes, {}, {})[0]);
  }
  auto values = evaluate_op(*node.op, node.attributes, types, tensors)[0].data;
  if (!values.empty() && std::ranges::all_of(values, [&](double value) { return value == values[0]; }))
    values.resize(1);
  return rewriter.insert_value(
      kConstant, {}, ConstantAttributes{type.dtype, {type.shape.begin(), type.shape.end()}, std::move(values)}, id);
}

// x where it has the type of the node's output, so that it can stand for it.
ValueId same_type(const Rewriter& rewriter, NodeId id, ValueId x) {
  return rewriter.type(x) == rewriter.type(rewriter.node(id).outputs[0]) ? x : kNone;
}

// The operand that is no uniform constant and the other one's value; for ops where the order does not matter, or where
// the constant is the second.
struct Operands {
  ValueId x = kNone;
  double constant = 0;
};
std::optional<Operands> with_constant(const Rewriter& rewriter, NodeId id) {
  const Node& node = rewriter.node(id);
  for (size_t i : {size_t{1}, size_t{0}}) {
    if (i == 0 && !node.op->traits.commutative) break;
    const auto constant = uniform_constant(rewriter, node.inputs[i]);
    if (!constant.has_value()) continue;
    const ValueId x = same_type(rewriter, id, node.inputs[1 - i]);
    if (x != kNone) return Operands{x, *constant};
  }
  return std::nullopt;
}

ValueId shifted(Rewriter& rewriter, NodeId id, ValueId x, double value) {
  return value == 0 ? x : rewriter.insert_value(kAddScalar, {x}, AddScalarAttributes{value}, id);
}
ValueId scaled(Rewriter& rewriter, NodeId id, ValueId x, double factor) {
  return factor == 1 ? x : rewriter.insert_value(kScale, {x}, ScaleAttributes{factor}, id);
}

ValueId fold_add(Rewriter& rewriter, NodeId id) {
  const auto operands = with_constant(rewriter, id);
  return operands ? shifted(rewriter, id, operands->x, operands->constant) : kNone;
}
ValueId fold_sub(Rewriter& rewriter, NodeId id) {
  const auto operands = with_constant(rewriter, id);
  return operands ? shifted(rewriter, id, operands->x, -operands->constant) : kNone;
}
ValueId fold_mul(Rewriter& rewriter, NodeId id) {
  const auto operands = with_constant(rewriter, id);
  return operands ? scaled(rewriter, id, operands->x, operands->constant) : kNone;
}
// Only by a power of two: the product with the reciprocal then has the same bits.
ValueId fold_div(Rewriter& rewriter, NodeId id) {
  const auto operands = with_constant(rewriter, id);
  if (!operands || !std::isfinite(operands->constant)) return kNone;
  int exponent = 0;
  if (std::abs(std::frexp(operands->constant, &exponent)) != 0.5) return kNone;
  return scaled(rewriter, id, operands->x, 1 / operands->constant);
}
ValueId fold_scale(Rewriter& rewriter, NodeId id) {
  const ValueId x = rewriter.node(id).inputs[0];
  const double factor = rewriter.node(id).attributes.as<ScaleAttributes>().factor;
  if (factor == 1) return x;
  const NodeId inner = rewriter.producer(x, kScale);
  if (inner == kNone) return kNone;
  return scaled(rewriter, id, rewriter.node(inner).inputs[0],
                factor * rewriter.node(inner).attributes.as<ScaleAttributes>().factor);
}
ValueId fold_add_scalar(Rewriter& rewriter, NodeId id) {
  return rewriter.node(id).attributes.as<AddScalarAttributes>().value == 0 ? rewriter.node(id).inputs[0] : kNone;
}
ValueId fold_dropout(Rewriter& rewriter, NodeId id) {
  return rewriter.node(id).attributes.as<DropoutAttributes>().p == 0 ? rewriter.node(id).inputs[0] : kNone;
}
ValueId fold_cast(Rewriter& rewriter, NodeId id) {
  return same_type(rewriter, id, rewriter.node(id).inputs[0]);
}

}  // namespace

std::span<const FoldRule> arithmetic_rules() {
  static const FoldRule kRules[] = {
      {nullptr, evaluate_constants},
      {&kAdd, fold_add},
      {&kSub, fold_sub},
      {&kMul, fold_mul},
      {&kDiv, fold_div},
      {&kScale, fold_scale},
      {&kAddScalar, fold_add_scalar},
      {&kDropout, fold_dropout},
      {&kCast, fold_cast},
  };
  return kRules;
}

}  // namespace ingot
