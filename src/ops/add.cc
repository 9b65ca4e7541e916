#include "ops/add.h"

#include "ops/elementwise.h"

namespace ingot {

const OpDef kAdd{
    .name = "add",
    .traits = {.elementwise = true, .commutative = true, .in_place = {0}},
    .infer = [](std::span<const Type> inputs, const Attributes&) { return infer_elementwise(inputs, 2); },
    .gradient =
        [](GradientContext& context) {
          for (size_t i = 0; i < 2; ++i)
            context.input_gradients[i] =
                sum_to_shape(context.builder, context.output_gradients[0], context.builder.shape(context.input(i)));
        },
    .evaluate = [](const EvalContext& context) { evaluate_binary(context, std::plus<>()); },
    .examples =
        [] {
          return std::vector<OpExample>{{{{DType::f32, {3, 5}}, {DType::f32, {3, 5}}}, {}},
                                        {{{DType::f32, {2, 3, 5}}, {DType::f32, {5}}}, {}},
                                        {{{DType::f32, {2, 1, 5}}, {DType::f32, {3, 1}}}, {}}};
        },
};

ValueId add(Builder& builder, ValueId a, ValueId b) {
  return builder.add(kAdd, {a, b});
}

}  // namespace ingot
