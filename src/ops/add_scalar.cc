#include "ops/add_scalar.h"

#include "ops/elementwise.h"

namespace ingot {

const OpDef kAddScalar{
    .name = "add_scalar",
    .traits = {.elementwise = true, .in_place = {0}},
    .infer = infer_unary,
    .gradient = [](GradientContext& context) { context.input_gradients[0] = context.output_gradients[0]; },
    .evaluate =
        [](const EvalContext& context) {
          const double value = context.node.attributes.as<AddScalarAttributes>().value;
          evaluate_unary(context, [value](double x) { return x + value; });
        },
    .parse_attributes = &parse_attributes<AddScalarAttributes>,
    .examples =
        [] {
          return std::vector<OpExample>{{{{DType::f32, {3, 5}}}, AddScalarAttributes{1.5}},
                                        {{{DType::f32, {7}}}, AddScalarAttributes{-3}}};
        },
};

ValueId add_scalar(Builder& builder, ValueId x, double value) {
  return builder.add(kAddScalar, {x}, AddScalarAttributes{value});
}

}  // namespace ingot
