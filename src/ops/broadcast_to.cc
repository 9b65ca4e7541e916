#include "ops/broadcast_to.h"

#include "ops/elementwise.h"

namespace ingot {
namespace {

Result<std::vector<Type>> infer(std::span<const Type> inputs, const Attributes& attributes) {
  const auto& dims = attributes.as<BroadcastToAttributes>().shape;
  if (inputs.size() != 1) return failed_error("{} inputs, expected 1", inputs.size());
  if (dims.size() > Shape::kMaxRank)
    return failed_error("a shape of {} dimensions, at most {}", dims.size(), Shape::kMaxRank);
  const Shape shape(dims);
  INGOT_ASSIGN(const Shape together, broadcast_shapes(inputs[0].shape, shape));
  if (!(together == shape))
    return failed_error("{} does not broadcast to {}", inputs[0].shape.to_string(), shape.to_string());
  return std::vector<Type>{{inputs[0].dtype, shape}};
}

void evaluate(const EvalContext& context) {
  RefTensor& out = context.outputs[0];
  const BroadcastIndex from(context.inputs[0]->shape, out.shape);
  for (int64_t i = 0; i < out.shape.elements(); ++i)
    out.data[static_cast<size_t>(i)] = context.inputs[0]->data[static_cast<size_t>(from(i))];
}

}  // namespace

const OpDef kBroadcastTo{
    .name = "broadcast_to",
    .infer = infer,
    .gradient =
        [](GradientContext& context) {
          context.input_gradients[0] =
              sum_to_shape(context.builder, context.output_gradients[0], context.builder.shape(context.input(0)));
        },
    .evaluate = evaluate,
    .parse_attributes = &parse_attributes<BroadcastToAttributes>,
    .examples =
        [] {
          return std::vector<OpExample>{{{{DType::f32, {3, 1}}}, BroadcastToAttributes{{2, 3, 5}}},
                                        {{{DType::f32, {}}}, BroadcastToAttributes{{4}}}};
        },
};

ValueId broadcast_to(Builder& builder, ValueId x, const Shape& shape) {
  if (builder.shape(x) == shape) return x;
  return builder.add(kBroadcastTo, {x}, BroadcastToAttributes{{shape.begin(), shape.end()}});
}

}  // namespace ingot
