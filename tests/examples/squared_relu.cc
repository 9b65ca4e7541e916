#include "squared_relu.h"

#include "ops/elementwise.h"
#include "ops/mul.h"
#include "ops/relu.h"
#include "ops/scale.h"

namespace ingot {

const OpDef kSquaredRelu{
    .name = "squared_relu",
    .traits = {.elementwise = true, .in_place = {0}},
    .infer = infer_unary,
    .gradient =
        [](GradientContext& context) {
          Builder& builder = context.builder;
          const ValueId slope = scale(builder, relu(builder, context.input(0)), 2);
          context.input_gradients[0] = mul(builder, context.output_gradients[0], slope);
        },
    .evaluate = [](const EvalContext& context) { evaluate_unary(context, [](double x) { return x > 0 ? x * x : 0; }); },
    .examples = [] { return unary_examples(); },
};

ValueId squared_relu(Builder& builder, ValueId x) {
  return builder.add(kSquaredRelu, {x});
}

}  // namespace ingot
