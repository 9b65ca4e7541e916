#include "ops/sigmoid.h"

#include <cmath>

#include "ops/elementwise.h"
#include "ops/mul.h"
#include "ops/square.h"
#include "ops/sub.h"

namespace ingot {

const OpDef kSigmoid{
    .name = "sigmoid",
    .traits = {.elementwise = true, .in_place = {0}},
    .infer = infer_unary,
    .gradient =
        [](GradientContext& context) {
          Builder& builder = context.builder;
          const ValueId dy = context.output_gradients[0];
          const ValueId y = context.output(0);
          context.input_gradients[0] = mul(builder, dy, sub(builder, y, square(builder, y)));
        },
    .evaluate =
        [](const EvalContext& context) { evaluate_unary(context, [](double x) { return 1 / (1 + std::exp(-x)); }); },
    .examples = [] { return unary_examples(); },
};

ValueId sigmoid(Builder& builder, ValueId x) {
  return builder.add(kSigmoid, {x});
}

}  // namespace ingot
