#include "ops/softmax_grad.h"

#include <numeric>

#include "graph/storage.h"
#include "ops/axes.h"

namespace ingot {
namespace {

Result<std::vector<Type>> infer(std::span<const Type> inputs, const Attributes&) {
  if (inputs.size() != 2) return failed_error("{} inputs, expected 2", inputs.size());
  if (!(inputs[0].shape == inputs[1].shape) || inputs[0].shape.rank() < 1)
    return failed_error("{} and {}, expected the same shape of at least one axis", inputs[0].to_string(),
                        inputs[1].to_string());
  return std::vector<Type>{computed(inputs[0])};
}

void evaluate(const EvalContext& context) {
  const RowsView view = rows_view(context.inputs[0]->shape);
  for (int64_t row = 0; row < view.rows; ++row) {
    const double* y = context.inputs[0]->data.data() + row * view.columns;
    const double* dy = context.inputs[1]->data.data() + row * view.columns;
    double* dx = context.outputs[0].data.data() + row * view.columns;
    const double sum = std::inner_product(y, y + view.columns, dy, 0.0);
    for (int64_t i = 0; i < view.columns; ++i) dx[i] = y[i] * (dy[i] - sum);
  }
}

}  // namespace

const OpDef kSoftmaxGrad{
    .name = "softmax_grad",
    .traits = {.in_place = {0}},
    .infer = infer,
    .evaluate = evaluate,
    .examples =
        [] {
          return std::vector<OpExample>{{{{DType::f32, {3, 5}}, {DType::f32, {3, 5}}}, {}},
                                        {{{DType::f32, {2, 1, 3, 7}}, {DType::f32, {2, 1, 3, 7}}}, {}}};
        },
};

ValueId softmax_grad(Builder& builder, ValueId y, ValueId dy) {
  return builder.add(kSoftmaxGrad, {y, dy});
}

}  // namespace ingot
