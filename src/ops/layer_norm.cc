#include "ops/layer_norm.h"

#include <cmath>

#include "graph/storage.h"
#include "ops/axes.h"
#include "ops/layer_norm_grad.h"

namespace ingot {
namespace {

Result<std::vector<Type>> infer(std::span<const Type> inputs, const Attributes& attributes) {
  const auto& [axes, eps, has_weight, has_bias] = attributes.as<LayerNormAttributes>();
  const size_t count = 1 + (has_weight ? 1 : 0) + (has_bias ? 1 : 0);
  if (inputs.size() != count) return failed_error("{} inputs, expected {}", inputs.size(), count);
  const Shape& x = inputs[0].shape;
  if (axes < 1 || axes > x.rank()) return failed_error("{} trailing axes of {}", axes, x.to_string());
  const Shape trailing = trailing_shape(x, axes);
  for (const Type& type : inputs.subspan(1))
    if (!(type.shape == trailing))
      return failed_error("a weight or bias of shape {}, expected {}", type.shape.to_string(), trailing.to_string());
  const Type statistics{DType::f32, leading_shape(x, axes)};
  return std::vector<Type>{computed(inputs[0]), statistics, statistics};
}

void gradient(GradientContext& context) {
  const auto [axes, eps, has_weight, has_bias] = context.op_node().attributes.as<LayerNormAttributes>();
  const LayerNormGradOutputs d =
      layer_norm_grad(context.builder, context.input(0), has_weight ? context.input(1) : kNone, context.output(1),
                      context.output(2), context.output_gradients[0], kNone, has_bias, axes);
  context.input_gradients[0] = d.dx;
  if (has_weight) context.input_gradients[1] = d.dweight;
  if (has_bias) context.input_gradients.back() = d.dbias;
}

void evaluate(const EvalContext& context) {
  const auto& [axes, eps, has_weight, has_bias] = context.node.attributes.as<LayerNormAttributes>();
  const RowsView view = rows_view(context.inputs[0]->shape, axes);
  const double* weight = has_weight ? context.inputs[1]->data.data() : nullptr;
  const double* bias = has_bias ? context.inputs.back()->data.data() : nullptr;
  for (int64_t row = 0; row < view.rows; ++row) {
    const double* x = context.inputs[0]->data.data() + row * view.columns;
    double* y = context.outputs[0].data.data() + row * view.columns;
    double mean = 0, variance = 0;
    for (int64_t i = 0; i < view.columns; ++i) mean += x[i] / static_cast<double>(view.columns);
    for (int64_t i = 0; i < view.columns; ++i)
      variance += (x[i] - mean) * (x[i] - mean) / static_cast<double>(view.columns);
    const double rstd = 1 / std::sqrt(variance + eps);
    for (int64_t i = 0; i < view.columns; ++i)
      y[i] = (x[i] - mean) * rstd * (weight ? weight[i] : 1.0) + (bias ? bias[i] : 0.0);
    context.outputs[1].data[static_cast<size_t>(row)] = mean;
    context.outputs[2].data[static_cast<size_t>(row)] = rstd;
  }
}

std::vector<OpExample> examples() {
  const auto type = [](Shape shape) { return Type{DType::f32, shape}; };
  return {{{type({3, 5}), type({5}), type({5})}, LayerNormAttributes{}},
          {{type({2, 3, 7}), type({7})}, LayerNormAttributes{1, 1e-3, true, false}},
          {{type({2, 3, 5}), type({5})}, LayerNormAttributes{1, 1e-5, false, true}},
          {{type({3, 7})}, LayerNormAttributes{1, 1e-5, false, false}},
          {{type({3, 2, 5}), type({2, 5}), type({2, 5})}, LayerNormAttributes{2, 1e-5, true, true}}};
}

}  // namespace

const OpDef kLayerNorm{
    .name = "layer_norm",
    .traits = {.saved_outputs = 2},
    .infer = infer,
    .gradient = gradient,
    .evaluate = evaluate,
    .parse_attributes = &parse_attributes<LayerNormAttributes>,
    .examples = examples,
};

LayerNormOutputs layer_norm(Builder& builder, ValueId x, ValueId weight, ValueId bias, double eps, int64_t axes) {
  std::vector<ValueId> inputs{x};
  if (weight != kNone) inputs.push_back(weight);
  if (bias != kNone) inputs.push_back(bias);
  const auto outputs =
      builder.add_many(kLayerNorm, std::move(inputs), LayerNormAttributes{axes, eps, weight != kNone, bias != kNone});
  return {outputs[0], outputs[1], outputs[2]};
}

}  // namespace ingot
