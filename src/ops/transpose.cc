#include "ops/transpose.h"

#include <algorithm>

namespace ingot {
namespace {

Result<std::vector<Type>> infer(std::span<const Type> inputs, const Attributes& attributes) {
  const auto& permutation = attributes.as<TransposeAttributes>().permutation;
  if (inputs.size() != 1) return failed_error("{} inputs, expected 1", inputs.size());
  const Shape& in = inputs[0].shape;
  std::vector<int64_t> sorted = permutation;
  std::ranges::sort(sorted);
  bool right = static_cast<int>(sorted.size()) == in.rank();
  for (size_t i = 0; i < sorted.size(); ++i) right = right && sorted[i] == static_cast<int64_t>(i);
  if (!right) return failed_error("not a permutation of the axes of {}", in.to_string());
  std::vector<int64_t> dims;
  for (int64_t axis : permutation) dims.push_back(in[static_cast<int>(axis)]);
  return std::vector<Type>{{inputs[0].dtype, Shape(dims)}};
}

void gradient(GradientContext& context) {
  const auto permutation = context.op_node().attributes.as<TransposeAttributes>().permutation;
  std::vector<int64_t> inverse(permutation.size());
  for (size_t i = 0; i < permutation.size(); ++i)
    inverse[static_cast<size_t>(permutation[i])] = static_cast<int64_t>(i);
  context.input_gradients[0] = transpose(context.builder, context.output_gradients[0], inverse);
}

void evaluate(const EvalContext& context) {
  const auto& permutation = context.node.attributes.as<TransposeAttributes>().permutation;
  const RefTensor& in = *context.inputs[0];
  RefTensor& out = context.outputs[0];
  std::vector<int64_t> strides(permutation.size());  // of the input
  int64_t stride = 1;
  for (int axis = in.shape.rank() - 1; axis >= 0; stride *= in.shape[axis--])
    strides[static_cast<size_t>(axis)] = stride;
  for (int64_t i = 0; i < out.shape.elements(); ++i) {
    int64_t rest = i, from = 0;
    for (int axis = out.shape.rank() - 1; axis >= 0; rest /= out.shape[axis--])
      from += rest % out.shape[axis] * strides[static_cast<size_t>(permutation[static_cast<size_t>(axis)])];
    out.data[static_cast<size_t>(i)] = in.data[static_cast<size_t>(from)];
  }
}

}  // namespace

const OpDef kTranspose{
    .name = "transpose",
    .infer = infer,
    .gradient = gradient,
    .evaluate = evaluate,
    .parse_attributes = &parse_attributes<TransposeAttributes>,
    .examples =
        [] {
          return std::vector<OpExample>{{{{DType::f32, {3, 5}}}, TransposeAttributes{{1, 0}}},
                                        {{{DType::f32, {2, 3, 5}}}, TransposeAttributes{{2, 0, 1}}},
                                        {{{DType::f32, {2, 3, 1, 5}}}, TransposeAttributes{{0, 2, 1, 3}}}};
        },
};

ValueId transpose(Builder& builder, ValueId x, std::vector<int64_t> permutation) {
  if (std::ranges::is_sorted(permutation)) return x;
  return builder.add(kTranspose, {x}, TransposeAttributes{std::move(permutation)});
}

}  // namespace ingot
