#include "ops/div.h"

#include "ops/elementwise.h"
#include "ops/mul.h"
#include "ops/neg.h"

namespace ingot {

const OpDef kDiv{
    .name = "div",
    .traits = {.elementwise = true, .in_place = {0}},
    .infer = [](std::span<const Type> inputs, const Attributes&) { return infer_elementwise(inputs, 2); },
    .gradient =
        [](GradientContext& context) {
          Builder& builder = context.builder;
          const ValueId dy = context.output_gradients[0];
          const ValueId da = div(builder, dy, context.input(1));
          const ValueId db = neg(builder, div(builder, mul(builder, dy, context.output(0)), context.input(1)));
          context.input_gradients[0] = sum_to_shape(builder, da, builder.shape(context.input(0)));
          context.input_gradients[1] = sum_to_shape(builder, db, builder.shape(context.input(1)));
        },
    .evaluate = [](const EvalContext& context) { evaluate_binary(context, std::divides<>()); },
    .examples =
        [] {
          return std::vector<OpExample>{{{{DType::f32, {3, 5}}, {DType::f32, {3, 5}}}, {}, {}, 0.5, 2},
                                        {{{DType::f32, {3, 5}}, {DType::f32, {}}}, {}, {}, 0.5, 2},
                                        {{{DType::f32, {2, 1, 5}}, {DType::f32, {3, 1}}}, {}, {}, 0.5, 2}};
        },
};

ValueId div(Builder& builder, ValueId a, ValueId b) {
  return builder.add(kDiv, {a, b});
}

}  // namespace ingot
