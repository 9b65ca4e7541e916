#include "ops/relu.h"

#include "ops/elementwise.h"
#include "ops/relu_grad.h"

namespace ingot {

const OpDef kRelu{
    .name = "relu",
    .traits = {.elementwise = true, .in_place = {0}},
    .infer = infer_unary,
    .gradient =
        [](GradientContext& context) {
          Builder& builder = context.builder;
          const ValueId dy = context.output_gradients[0];
          const ValueId x = context.input(0);
          context.input_gradients[0] = relu_grad(builder, x, dy);
        },
    .evaluate = [](const EvalContext& context) { evaluate_unary(context, [](double x) { return x > 0 ? x : 0.0; }); },
    .examples =
        [] {
          return std::vector<OpExample>{{{{DType::f32, {3, 5}}}, {}, {}, 0.1, 2},
                                        {{{DType::f32, {2, 2, 1}}}, {}, {{-1.5, 0.25, -0.125, 2}}}};
        },
};

ValueId relu(Builder& builder, ValueId x) {
  return builder.add(kRelu, {x});
}

}  // namespace ingot
