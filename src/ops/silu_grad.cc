#include "ops/silu_grad.h"

#include <cmath>

#include "ops/elementwise.h"

namespace ingot {

const OpDef kSiluGrad{
    .name = "silu_grad",
    .traits = {.elementwise = true, .in_place = {0}},
    .infer = infer_unary_grad,
    .evaluate =
        [](const EvalContext& context) {
          evaluate_binary(context, [](double x, double dy) {
            const double sigmoid = 1 / (1 + std::exp(-x));
            return dy * sigmoid * (1 + x * (1 - sigmoid));
          });
        },
    .examples = unary_grad_examples,
};

ValueId silu_grad(Builder& builder, ValueId x, ValueId dy) {
  return builder.add(kSiluGrad, {x, dy});
}

}  // namespace ingot
