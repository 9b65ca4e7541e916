#include "ops/concat.h"

#include "ops/axes.h"
#include "ops/split.h"

namespace ingot {
namespace {

Result<std::vector<Type>> infer(std::span<const Type> inputs, const Attributes& attributes) {
  const int64_t axis = attributes.as<ConcatAttributes>().axis;
  if (inputs.empty()) return failed_error("no inputs, expected at least 1");
  Type out = inputs[0];
  INGOT_TRY(check_axis(out.shape, axis));
  int64_t extent = 0;
  for (const Type& type : inputs) {
    if (type.dtype != out.dtype)
      return failed_error("inputs of dtypes {} and {}", name_of(out.dtype), name_of(type.dtype));
    if (type.shape.rank() != out.shape.rank())
      return failed_error("{} and {} along axis {}", out.shape.to_string(), type.shape.to_string(), axis);
    out.shape[static_cast<int>(axis)] = type.shape[static_cast<int>(axis)];
    if (!(type.shape == out.shape))
      return failed_error("{} and {} along axis {}", out.shape.to_string(), type.shape.to_string(), axis);
    extent += type.shape[static_cast<int>(axis)];
  }
  out.shape[static_cast<int>(axis)] = extent;
  return std::vector<Type>{out};
}

void gradient(GradientContext& context) {
  Builder& builder = context.builder;
  const int axis = static_cast<int>(context.op_node().attributes.as<ConcatAttributes>().axis);
  std::vector<int64_t> sizes;
  for (ValueId input : context.op_node().inputs) sizes.push_back(builder.shape(input)[axis]);
  context.input_gradients = split(builder, context.output_gradients[0], axis, sizes);
}

void evaluate(const EvalContext& context) {
  const int64_t axis = context.node.attributes.as<ConcatAttributes>().axis;
  const AxisView out = axis_view(context.outputs[0].shape, axis);
  int64_t start = 0;
  for (const RefTensor* input : context.inputs) {
    const AxisView in = axis_view(input->shape, axis);
    for (int64_t i = 0; i < in.outer; ++i)
      std::copy_n(input->data.begin() + i * in.extent * in.inner, in.extent * in.inner,
                  context.outputs[0].data.begin() + (i * out.extent + start) * out.inner);
    start += in.extent;
  }
}

}  // namespace

const OpDef kConcat{
    .name = "concat",
    .traits = {.join = [](const Attributes& attributes) { return attributes.as<ConcatAttributes>().axis; }},
    .infer = infer,
    .gradient = gradient,
    .evaluate = evaluate,
    .parse_attributes = &parse_attributes<ConcatAttributes>,
    .examples =
        [] {
          return std::vector<OpExample>{
              {{{DType::f32, {3, 5}}, {DType::f32, {2, 5}}}, ConcatAttributes{0}},
              {{{DType::f32, {2, 3, 5}}, {DType::f32, {2, 1, 5}}, {DType::f32, {2, 2, 5}}}, ConcatAttributes{1}},
              {{{DType::f32, {3, 1}}, {DType::f32, {3, 7}}}, ConcatAttributes{1}}};
        },
};

ValueId concat(Builder& builder, std::vector<ValueId> values, int axis) {
  if (values.size() == 1) return values[0];
  const int at = builder.shape(values.at(0)).normalize(axis);
  return builder.add(kConcat, std::move(values), ConcatAttributes{at});
}

}  // namespace ingot
