#include "ops/scale.h"

#include "ops/elementwise.h"

namespace ingot {

const OpDef kScale{
    .name = "scale",
    .traits = {.elementwise = true, .in_place = {0}},
    .infer = infer_unary,
    .gradient =
        [](GradientContext& context) {
          context.input_gradients[0] = scale(context.builder, context.output_gradients[0],
                                             context.op_node().attributes.as<ScaleAttributes>().factor);
        },
    .evaluate =
        [](const EvalContext& context) {
          const double factor = context.node.attributes.as<ScaleAttributes>().factor;
          evaluate_unary(context, [factor](double x) { return factor * x; });
        },
    .parse_attributes = &parse_attributes<ScaleAttributes>,
    .examples =
        [] {
          return std::vector<OpExample>{{{{DType::f32, {3, 5}}}, ScaleAttributes{0.125}},
                                        {{{DType::f32, {7}}}, ScaleAttributes{-3}}};
        },
};

ValueId scale(Builder& builder, ValueId x, double factor) {
  return builder.add(kScale, {x}, ScaleAttributes{factor});
}

}  // namespace ingot
