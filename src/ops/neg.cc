#include "ops/neg.h"

#include "ops/elementwise.h"

namespace ingot {

const OpDef kNeg{
    .name = "neg",
    .traits = {.elementwise = true, .in_place = {0}},
    .infer = infer_unary,
    .gradient =
        [](GradientContext& context) {
          Builder& builder = context.builder;
          const ValueId dy = context.output_gradients[0];
          context.input_gradients[0] = neg(builder, dy);
        },
    .evaluate = [](const EvalContext& context) { evaluate_unary(context, [](double x) { return -x; }); },
    .examples = [] { return unary_examples(); },
};

ValueId neg(Builder& builder, ValueId x) {
  return builder.add(kNeg, {x});
}

}  // namespace ingot
