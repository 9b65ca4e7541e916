#include "ops/sqrt.h"

#include <cmath>

#include "ops/div.h"
#include "ops/elementwise.h"
#include "ops/scale.h"

namespace ingot {

const OpDef kSqrt{
    .name = "sqrt",
    .traits = {.elementwise = true, .in_place = {0}},
    .infer = infer_unary,
    .gradient =
        [](GradientContext& context) {
          Builder& builder = context.builder;
          const ValueId dy = context.output_gradients[0];
          const ValueId y = context.output(0);
          context.input_gradients[0] = scale(builder, div(builder, dy, y), 0.5);
        },
    .evaluate = [](const EvalContext& context) { evaluate_unary(context, [](double x) { return std::sqrt(x); }); },
    .examples = [] { return unary_examples(0.5, 2); },
};

ValueId sqrt(Builder& builder, ValueId x) {
  return builder.add(kSqrt, {x});
}

}  // namespace ingot
