#include "ops/square.h"

#include "ops/elementwise.h"
#include "ops/mul.h"
#include "ops/scale.h"

namespace ingot {

const OpDef kSquare{
    .name = "square",
    .traits = {.elementwise = true, .in_place = {0}},
    .infer = infer_unary,
    .gradient =
        [](GradientContext& context) {
          Builder& builder = context.builder;
          const ValueId dy = context.output_gradients[0];
          const ValueId x = context.input(0);
          context.input_gradients[0] = scale(builder, mul(builder, x, dy), 2);
        },
    .evaluate = [](const EvalContext& context) { evaluate_unary(context, [](double x) { return x * x; }); },
    .examples = [] { return unary_examples(); },
};

ValueId square(Builder& builder, ValueId x) {
  return builder.add(kSquare, {x});
}

}  // namespace ingot
