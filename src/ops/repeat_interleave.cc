#include "ops/repeat_interleave.h"

#include "ops/axes.h"
#include "ops/reshape.h"
#include "ops/sum.h"

namespace ingot {
namespace {

Result<std::vector<Type>> infer(std::span<const Type> inputs, const Attributes& attributes) {
  const auto& [axis, repeats] = attributes.as<RepeatInterleaveAttributes>();
  if (inputs.size() != 1) return failed_error("{} inputs, expected 1", inputs.size());
  Shape shape = inputs[0].shape;
  INGOT_TRY(check_axis(shape, axis));
  if (repeats < 1) return failed_error("{} repeats, expected at least 1", repeats);
  shape[static_cast<int>(axis)] *= repeats;
  return std::vector<Type>{{inputs[0].dtype, shape}};
}

// [outer, extent, repeats, inner] summed over the repeats.
void gradient(GradientContext& context) {
  Builder& builder = context.builder;
  const auto [axis, repeats] = context.op_node().attributes.as<RepeatInterleaveAttributes>();
  const Shape in = builder.shape(context.input(0));
  const AxisView view = axis_view(in, axis);
  const ValueId apart = reshape(builder, context.output_gradients[0], {view.outer * view.extent, repeats, view.inner});
  context.input_gradients[0] = reshape(builder, sum(builder, apart, {1}), in);
}

void evaluate(const EvalContext& context) {
  const auto& [axis, repeats] = context.node.attributes.as<RepeatInterleaveAttributes>();
  const AxisView in = axis_view(context.inputs[0]->shape, axis);
  auto to = context.outputs[0].data.begin();
  for (int64_t i = 0; i < in.outer * in.extent; ++i)
    for (int64_t k = 0; k < repeats; ++k)
      to = std::copy_n(context.inputs[0]->data.begin() + i * in.inner, in.inner, to);
}

}  // namespace

const OpDef kRepeatInterleave{
    .name = "repeat_interleave",
    .infer = infer,
    .gradient = gradient,
    .evaluate = evaluate,
    .parse_attributes = &parse_attributes<RepeatInterleaveAttributes>,
    .examples =
        [] {
          return std::vector<OpExample>{{{{DType::f32, {3, 5}}}, RepeatInterleaveAttributes{0, 2}},
                                        {{{DType::f32, {2, 3, 2, 5}}}, RepeatInterleaveAttributes{1, 3}},
                                        {{{DType::f32, {3, 5}}}, RepeatInterleaveAttributes{1, 2}}};
        },
};

ValueId repeat_interleave(Builder& builder, ValueId x, int axis, int64_t repeats) {
  if (repeats == 1) return x;
  return builder.add(kRepeatInterleave, {x}, RepeatInterleaveAttributes{builder.shape(x).normalize(axis), repeats});
}

}  // namespace ingot
