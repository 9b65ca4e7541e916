#include "ops/gelu_tanh_grad.h"

#include <cmath>
#include <numbers>

#include "ops/elementwise.h"

namespace ingot {

const OpDef kGeluTanhGrad{
    .name = "gelu_tanh_grad",
    .traits = {.elementwise = true, .in_place = {0}},
    .infer = infer_unary_grad,
    .evaluate =
        [](const EvalContext& context) {
          evaluate_binary(context, [](double x, double dy) {
            const double slope = std::sqrt(2 / std::numbers::pi);
            const double t = std::tanh(slope * (x + 0.044715 * x * x * x));
            return dy * 0.5 * (1 + t + x * (1 - t * t) * slope * (1 + 3 * 0.044715 * x * x));
          });
        },
    .examples = unary_grad_examples,
};

ValueId gelu_tanh_grad(Builder& builder, ValueId x, ValueId dy) {
  return builder.add(kGeluTanhGrad, {x, dy});
}

}  // namespace ingot
