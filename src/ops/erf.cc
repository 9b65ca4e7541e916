#include "ops/erf.h"

#include <cmath>
#include <numbers>

#include "ops/elementwise.h"
#include "ops/exp.h"
#include "ops/mul.h"
#include "ops/neg.h"
#include "ops/scale.h"
#include "ops/square.h"

namespace ingot {

const OpDef kErf{
    .name = "erf",
    .traits = {.elementwise = true, .in_place = {0}},
    .infer = infer_unary,
    .gradient =
        [](GradientContext& context) {
          Builder& builder = context.builder;
          const ValueId dy = context.output_gradients[0];
          const ValueId x = context.input(0);
          context.input_gradients[0] = scale(builder, mul(builder, dy, exp(builder, neg(builder, square(builder, x)))),
                                             2 * std::numbers::inv_sqrtpi);
        },
    .evaluate = [](const EvalContext& context) { evaluate_unary(context, [](double x) { return std::erf(x); }); },
    .examples = [] { return unary_examples(); },
};

ValueId erf(Builder& builder, ValueId x) {
  return builder.add(kErf, {x});
}

}  // namespace ingot
