#include "ops/relu_grad.h"

#include "ops/elementwise.h"

namespace ingot {

const OpDef kReluGrad{
    .name = "relu_grad",
    .traits = {.elementwise = true, .in_place = {0}},
    .infer = infer_unary_grad,
    .evaluate =
        [](const EvalContext& context) {
          evaluate_binary(context, [](double x, double dy) { return x > 0 ? dy : 0.0; });
        },
    .examples = unary_grad_examples,
};

ValueId relu_grad(Builder& builder, ValueId x, ValueId dy) {
  return builder.add(kReluGrad, {x, dy});
}

}  // namespace ingot
