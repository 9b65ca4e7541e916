#include "ops/tanh.h"

#include <cmath>

#include "ops/elementwise.h"
#include "ops/mul.h"
#include "ops/square.h"
#include "ops/sub.h"

namespace ingot {

const OpDef kTanh{
    .name = "tanh",
    .traits = {.elementwise = true, .in_place = {0}},
    .infer = infer_unary,
    .gradient =
        [](GradientContext& context) {
          Builder& builder = context.builder;
          const ValueId dy = context.output_gradients[0];
          const ValueId y = context.output(0);
          context.input_gradients[0] = sub(builder, dy, mul(builder, dy, square(builder, y)));
        },
    .evaluate = [](const EvalContext& context) { evaluate_unary(context, [](double x) { return std::tanh(x); }); },
    .examples = [] { return unary_examples(); },
};

ValueId tanh(Builder& builder, ValueId x) {
  return builder.add(kTanh, {x});
}

}  // namespace ingot
