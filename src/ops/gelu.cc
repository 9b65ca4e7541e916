#include "ops/gelu.h"

#include <cmath>
#include <numbers>

#include "ops/elementwise.h"
#include "ops/gelu_grad.h"

namespace ingot {

const OpDef kGelu{
    .name = "gelu",
    .traits = {.elementwise = true, .in_place = {0}},
    .infer = infer_unary,
    .gradient =
        [](GradientContext& context) {
          Builder& builder = context.builder;
          const ValueId dy = context.output_gradients[0];
          const ValueId x = context.input(0);
          context.input_gradients[0] = gelu_grad(builder, x, dy);
        },
    .evaluate =
        [](const EvalContext& context) {
          evaluate_unary(context, [](double x) { return 0.5 * x * (1 + std::erf(x / std::numbers::sqrt2)); });
        },
    .examples = [] { return unary_examples(); },
};

ValueId gelu(Builder& builder, ValueId x) {
  return builder.add(kGelu, {x});
}

}  // namespace ingot
