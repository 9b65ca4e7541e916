#include "ops/mul.h"

#include "ops/elementwise.h"

namespace ingot {

const OpDef kMul{
    .name = "mul",
    .traits = {.elementwise = true, .commutative = true, .in_place = {0}},
    .infer = [](std::span<const Type> inputs, const Attributes&) { return infer_elementwise(inputs, 2); },
    .gradient =
        [](GradientContext& context) {
          Builder& builder = context.builder;
          for (size_t i = 0; i < 2; ++i) {
            const ValueId product = mul(builder, context.output_gradients[0], context.input(1 - i));
            context.input_gradients[i] = sum_to_shape(builder, product, builder.shape(context.input(i)));
          }
        },
    .evaluate = [](const EvalContext& context) { evaluate_binary(context, std::multiplies<>()); },
    .examples =
        [] {
          return std::vector<OpExample>{{{{DType::f32, {3, 5}}, {DType::f32, {3, 5}}}, {}},
                                        {{{DType::f32, {3, 5}}, {DType::f32, {}}}, {}},
                                        {{{DType::f32, {2, 3, 5}}, {DType::f32, {3, 1}}}, {}}};
        },
};

ValueId mul(Builder& builder, ValueId a, ValueId b) {
  return builder.add(kMul, {a, b});
}

}  // namespace ingot
