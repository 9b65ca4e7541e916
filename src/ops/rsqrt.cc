#include "ops/rsqrt.h"

#include <cmath>

#include "ops/elementwise.h"
#include "ops/mul.h"
#include "ops/scale.h"
#include "ops/square.h"

namespace ingot {

const OpDef kRsqrt{
    .name = "rsqrt",
    .traits = {.elementwise = true, .in_place = {0}},
    .infer = infer_unary,
    .gradient =
        [](GradientContext& context) {
          Builder& builder = context.builder;
          const ValueId dy = context.output_gradients[0];
          const ValueId y = context.output(0);
          context.input_gradients[0] = scale(builder, mul(builder, dy, mul(builder, y, square(builder, y))), -0.5);
        },
    .evaluate = [](const EvalContext& context) { evaluate_unary(context, [](double x) { return 1 / std::sqrt(x); }); },
    .examples = [] { return unary_examples(0.5, 2); },
};

ValueId rsqrt(Builder& builder, ValueId x) {
  return builder.add(kRsqrt, {x});
}

}  // namespace ingot
