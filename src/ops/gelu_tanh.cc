#include "ops/gelu_tanh.h"

#include <cmath>
#include <numbers>

#include "ops/elementwise.h"
#include "ops/gelu_tanh_grad.h"

namespace ingot {
namespace {

const double kSlope = std::sqrt(2 / std::numbers::pi);

}  // namespace

const OpDef kGeluTanh{
    .name = "gelu_tanh",
    .traits = {.elementwise = true, .in_place = {0}},
    .infer = infer_unary,
    .gradient =
        [](GradientContext& context) {
          Builder& builder = context.builder;
          const ValueId dy = context.output_gradients[0];
          const ValueId x = context.input(0);
          context.input_gradients[0] = gelu_tanh_grad(builder, x, dy);
        },
    .evaluate =
        [](const EvalContext& context) {
          evaluate_unary(context,
                         [](double x) { return 0.5 * x * (1 + std::tanh(kSlope * (x + 0.044715 * x * x * x))); });
        },
    .examples = [] { return unary_examples(); },
};

ValueId gelu_tanh(Builder& builder, ValueId x) {
  return builder.add(kGeluTanh, {x});
}

}  // namespace ingot
