#include "ops/exp.h"

#include <cmath>

#include "ops/elementwise.h"
#include "ops/mul.h"

namespace ingot {

const OpDef kExp{
    .name = "exp",
    .traits = {.elementwise = true, .in_place = {0}},
    .infer = infer_unary,
    .gradient =
        [](GradientContext& context) {
          Builder& builder = context.builder;
          const ValueId dy = context.output_gradients[0];
          const ValueId y = context.output(0);
          context.input_gradients[0] = mul(builder, dy, y);
        },
    .evaluate = [](const EvalContext& context) { evaluate_unary(context, [](double x) { return std::exp(x); }); },
    .examples = [] { return unary_examples(); },
};

ValueId exp(Builder& builder, ValueId x) {
  return builder.add(kExp, {x});
}

}  // namespace ingot
