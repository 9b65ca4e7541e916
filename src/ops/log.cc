#include "ops/log.h"

#include <cmath>

#include "ops/div.h"
#include "ops/elementwise.h"

namespace ingot {

const OpDef kLog{
    .name = "log",
    .traits = {.elementwise = true, .in_place = {0}},
    .infer = infer_unary,
    .gradient =
        [](GradientContext& context) {
          Builder& builder = context.builder;
          const ValueId dy = context.output_gradients[0];
          const ValueId x = context.input(0);
          context.input_gradients[0] = div(builder, dy, x);
        },
    .evaluate = [](const EvalContext& context) { evaluate_unary(context, [](double x) { return std::log(x); }); },
    .examples = [] { return unary_examples(0.5, 2); },
};

ValueId log(Builder& builder, ValueId x) {
  return builder.add(kLog, {x});
}

}  // namespace ingot
