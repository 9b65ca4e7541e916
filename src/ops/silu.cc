#include "ops/silu.h"

#include <cmath>

#include "ops/elementwise.h"
#include "ops/silu_grad.h"

namespace ingot {

const OpDef kSilu{
    .name = "silu",
    .traits = {.elementwise = true, .in_place = {0}},
    .infer = infer_unary,
    .gradient =
        [](GradientContext& context) {
          Builder& builder = context.builder;
          const ValueId dy = context.output_gradients[0];
          const ValueId x = context.input(0);
          context.input_gradients[0] = silu_grad(builder, x, dy);
        },
    .evaluate =
        [](const EvalContext& context) { evaluate_unary(context, [](double x) { return x / (1 + std::exp(-x)); }); },
    .examples = [] { return unary_examples(); },
};

ValueId silu(Builder& builder, ValueId x) {
  return builder.add(kSilu, {x});
}

}  // namespace ingot
