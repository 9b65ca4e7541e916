#include "ops/reshape.h"

namespace ingot {
namespace {

Result<std::vector<Type>> infer(std::span<const Type> inputs, const Attributes& attributes) {
  const auto& dims = attributes.as<ReshapeAttributes>().shape;
  if (inputs.size() != 1) return failed_error("{} inputs, expected 1", inputs.size());
  if (dims.size() > Shape::kMaxRank)
    return failed_error("a shape of {} dimensions, at most {}", dims.size(), Shape::kMaxRank);
  const Shape shape(dims);
  if (shape.elements() != inputs[0].shape.elements())
    return failed_error("{} has {} elements, {} has {}", inputs[0].shape.to_string(), inputs[0].shape.elements(),
                        shape.to_string(), shape.elements());
  return std::vector<Type>{{inputs[0].dtype, shape}};
}

}  // namespace

const OpDef kReshape{
    .name = "reshape",
    .traits = {.view = true, .in_place = {0}},
    .infer = infer,
    .gradient =
        [](GradientContext& context) {
          context.input_gradients[0] =
              reshape(context.builder, context.output_gradients[0], context.builder.shape(context.input(0)));
        },
    .evaluate = [](const EvalContext& context) { context.outputs[0].data = context.inputs[0]->data; },
    .parse_attributes = &parse_attributes<ReshapeAttributes>,
    .examples =
        [] {
          return std::vector<OpExample>{{{{DType::f32, {2, 3, 5}}}, ReshapeAttributes{{6, 5}}}};
        },
};

ValueId reshape(Builder& builder, ValueId x, const Shape& shape) {
  if (builder.shape(x) == shape) return x;
  return builder.add(kReshape, {x}, ReshapeAttributes{{shape.begin(), shape.end()}});
}

}  // namespace ingot
