#include "ops/rms_norm.h"

#include <cmath>

#include "graph/storage.h"
#include "ops/axes.h"
#include "ops/rms_norm_grad.h"

namespace ingot {
namespace {

Result<std::vector<Type>> infer(std::span<const Type> inputs, const Attributes& attributes) {
  const bool has_weight = attributes.as<RmsNormAttributes>().has_weight;
  const size_t count = has_weight ? 2 : 1;
  if (inputs.size() != count) return failed_error("{} inputs, expected {}", inputs.size(), count);
  const Shape& x = inputs[0].shape;
  if (x.rank() < 1) return failed_error("a scalar, expected at least one axis");
  if (has_weight && !(inputs[1].shape == trailing_shape(x)))
    return failed_error("a weight of shape {} for {}", inputs[1].shape.to_string(), x.to_string());
  return std::vector<Type>{computed(inputs[0]), {DType::f32, leading_shape(x)}};
}

void gradient(GradientContext& context) {
  const bool has_weight = context.op_node().attributes.as<RmsNormAttributes>().has_weight;
  const RmsNormGradOutputs d = rms_norm_grad(context.builder, context.input(0), has_weight ? context.input(1) : kNone,
                                             context.output(1), context.output_gradients[0], kNone);
  context.input_gradients[0] = d.dx;
  if (has_weight) context.input_gradients[1] = d.dweight;
}

void evaluate(const EvalContext& context) {
  const auto& [eps, has_weight] = context.node.attributes.as<RmsNormAttributes>();
  const RowsView view = rows_view(context.inputs[0]->shape);
  for (int64_t row = 0; row < view.rows; ++row) {
    const double* x = context.inputs[0]->data.data() + row * view.columns;
    double* y = context.outputs[0].data.data() + row * view.columns;
    double mean_square = 0;
    for (int64_t i = 0; i < view.columns; ++i) mean_square += x[i] * x[i] / static_cast<double>(view.columns);
    const double rstd = 1 / std::sqrt(mean_square + eps);
    for (int64_t i = 0; i < view.columns; ++i)
      y[i] = x[i] * rstd * (has_weight ? context.inputs[1]->data[static_cast<size_t>(i)] : 1.0);
    context.outputs[1].data[static_cast<size_t>(row)] = rstd;
  }
}

}  // namespace

const OpDef kRmsNorm{
    .name = "rms_norm",
    .traits = {.saved_outputs = 1},
    .infer = infer,
    .gradient = gradient,
    .evaluate = evaluate,
    .parse_attributes = &parse_attributes<RmsNormAttributes>,
    .examples =
        [] {
          return std::vector<OpExample>{
              {{{DType::f32, {3, 5}}, {DType::f32, {5}}}, RmsNormAttributes{}},
              {{{DType::f32, {2, 3, 7}}}, RmsNormAttributes{1e-3, false}},
              {{{DType::f32, {2, 1, 3, 4}}, {DType::f32, {4}}}, RmsNormAttributes{1e-5, true}}};
        },
};

RmsNormOutputs rms_norm(Builder& builder, ValueId x, ValueId weight, double eps) {
  std::vector<ValueId> inputs{x};
  if (weight != kNone) inputs.push_back(weight);
  const auto outputs = builder.add_many(kRmsNorm, std::move(inputs), RmsNormAttributes{eps, weight != kNone});
  return {outputs[0], outputs[1]};
}

}  // namespace ingot
