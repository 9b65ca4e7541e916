#include "ops/softmax.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "graph/storage.h"
#include "ops/axes.h"
#include "ops/softmax_grad.h"

namespace ingot {
namespace {

Result<std::vector<Type>> infer(std::span<const Type> inputs, const Attributes&) {
  if (inputs.size() != 1) return failed_error("{} inputs, expected 1", inputs.size());
  if (inputs[0].shape.rank() < 1) return failed_error("a scalar, expected at least one axis");
  return std::vector<Type>{computed(inputs[0])};
}

void evaluate(const EvalContext& context) {
  const RowsView view = rows_view(context.inputs[0]->shape);
  for (int64_t row = 0; row < view.rows; ++row) {
    const double* x = context.inputs[0]->data.data() + row * view.columns;
    double* y = context.outputs[0].data.data() + row * view.columns;
    const double largest = view.columns == 0 ? 0 : *std::max_element(x, x + view.columns);
    if (largest == -std::numeric_limits<double>::infinity()) continue;
    double sum = 0;
    for (int64_t i = 0; i < view.columns; ++i) sum += y[i] = std::exp(x[i] - largest);
    for (int64_t i = 0; i < view.columns; ++i) y[i] /= sum;
  }
}

}  // namespace

const OpDef kSoftmax{
    .name = "softmax",
    .traits = {.in_place = {0}},
    .infer = infer,
    .gradient =
        [](GradientContext& context) {
          context.input_gradients[0] = softmax_grad(context.builder, context.output(0), context.output_gradients[0]);
        },
    .evaluate = evaluate,
    .examples =
        [] {
          return std::vector<OpExample>{{{{DType::f32, {3, 5}}}, {}, {}, -3, 3}, {{{DType::f32, {2, 1, 3, 7}}}, {}}};
        },
};

ValueId softmax(Builder& builder, ValueId x) {
  return builder.add(kSoftmax, {x});
}

}  // namespace ingot
