#include "ops/sum.h"

#include <algorithm>

#include "graph/storage.h"
#include "ops/broadcast_to.h"
#include "ops/elementwise.h"
#include "ops/reshape.h"

namespace ingot {
namespace {

// The input's shape with extent 1 on the summed axes.
Shape kept_shape(const Shape& in, const std::vector<int64_t>& axes) {
  Shape kept = in;
  for (int64_t axis : axes) kept[static_cast<int>(axis)] = 1;
  return kept;
}

Result<std::vector<Type>> infer(std::span<const Type> inputs, const Attributes& attributes) {
  const auto& axes = attributes.as<SumAttributes>().axes;
  if (inputs.size() != 1) return failed_error("{} inputs, expected 1", inputs.size());
  if (!std::ranges::is_sorted(axes, std::less_equal<>()) ||
      (!axes.empty() && (axes.front() < 0 || axes.back() >= inputs[0].shape.rank())))
    return failed_error("axes must ascend within the rank of {}", inputs[0].shape.to_string());
  std::vector<int64_t> dims;
  for (int axis = 0; axis < inputs[0].shape.rank(); ++axis)
    if (!std::ranges::binary_search(axes, axis)) dims.push_back(inputs[0].shape[axis]);
  return std::vector<Type>{{computed(inputs[0]).dtype, Shape(dims)}};
}

void gradient(GradientContext& context) {
  Builder& builder = context.builder;
  const Shape in = builder.shape(context.input(0));
  const ValueId kept = reshape(builder, context.output_gradients[0],
                               kept_shape(in, context.op_node().attributes.as<SumAttributes>().axes));
  context.input_gradients[0] = broadcast_to(builder, kept, in);
}

void evaluate(const EvalContext& context) {
  const RefTensor& in = *context.inputs[0];
  const BroadcastIndex to(kept_shape(in.shape, context.node.attributes.as<SumAttributes>().axes), in.shape);
  for (int64_t i = 0; i < in.shape.elements(); ++i)
    context.outputs[0].data[static_cast<size_t>(to(i))] += in.data[static_cast<size_t>(i)];
}

}  // namespace

const OpDef kSum{
    .name = "sum",
    .infer = infer,
    .gradient = gradient,
    .evaluate = evaluate,
    .parse_attributes = &parse_attributes<SumAttributes>,
    .examples =
        [] {
          return std::vector<OpExample>{{{{DType::f32, {2, 3, 5}}}, SumAttributes{{0, 1}}},
                                        {{{DType::f32, {2, 3, 5}}}, SumAttributes{{1}}},
                                        {{{DType::f32, {4, 3}}}, SumAttributes{{0, 1}}}};
        },
};

ValueId sum(Builder& builder, ValueId x, std::vector<int64_t> axes) {
  return builder.add(kSum, {x}, SumAttributes{std::move(axes)});
}

}  // namespace ingot
