#include "ops/gelu_grad.h"

#include <cmath>
#include <numbers>

#include "ops/elementwise.h"

namespace ingot {

const OpDef kGeluGrad{
    .name = "gelu_grad",
    .traits = {.elementwise = true, .in_place = {0}},
    .infer = infer_unary_grad,
    .evaluate =
        [](const EvalContext& context) {
          evaluate_binary(context, [](double x, double dy) {
            const double cdf = 0.5 * (1 + std::erf(x / std::numbers::sqrt2));
            const double density = std::exp(-0.5 * x * x) * std::numbers::inv_sqrtpi / std::numbers::sqrt2;
            return dy * (cdf + x * density);
          });
        },
    .examples = unary_grad_examples,
};

ValueId gelu_grad(Builder& builder, ValueId x, ValueId dy) {
  return builder.add(kGeluGrad, {x, dy});
}

}  // namespace ingot
