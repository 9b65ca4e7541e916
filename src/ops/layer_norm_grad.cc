#include "ops/layer_norm_grad.h"

#include "graph/storage.h"
#include "ops/axes.h"

namespace ingot {
namespace {

Result<std::vector<Type>> infer(std::span<const Type> inputs, const Attributes& attributes) {
  const auto& [axes, has_weight, has_bias, has_residual] = attributes.as<LayerNormGradAttributes>();
  const size_t count = 4 + (has_weight ? 1 : 0) + (has_residual ? 1 : 0);
  if (inputs.size() != count) return failed_error("{} inputs, expected {}", inputs.size(), count);
  const Shape& x = inputs[0].shape;
  if (axes < 1 || axes > x.rank()) return failed_error("{} trailing axes of {}", axes, x.to_string());
  const Shape leading = leading_shape(x, axes), trailing = trailing_shape(x, axes);
  size_t at = 1;
  const auto expect = [&](const char* what, const Shape& shape) -> Status {
    const Shape& found = inputs[at++].shape;
    if (!(found == shape))
      return failed_error("{} of shape {}, expected {}", what, found.to_string(), shape.to_string());
    return {};
  };
  if (has_weight) INGOT_TRY(expect("weight", trailing));
  INGOT_TRY(expect("mean", leading));
  INGOT_TRY(expect("rstd", leading));
  INGOT_TRY(expect("dy", x));
  if (has_residual) INGOT_TRY(expect("residual", x));
  std::vector<Type> out{computed(inputs[0])};
  for (int i = 0; i < (has_weight ? 1 : 0) + (has_bias ? 1 : 0); ++i) out.push_back({out[0].dtype, trailing});
  return out;
}

// With g = dy·weight and n = (x - mean)·rstd: dx = rstd·(g - mean(g) - n·mean(g·n)).
void evaluate(const EvalContext& context) {
  const auto& [axes, has_weight, has_bias, has_residual] = context.node.attributes.as<LayerNormGradAttributes>();
  const RowsView view = rows_view(context.inputs[0]->shape, axes);
  const size_t shift = has_weight ? 1 : 0;
  const double* weight = has_weight ? context.inputs[1]->data.data() : nullptr;
  const auto& means = context.inputs[1 + shift]->data;
  const auto& rstds = context.inputs[2 + shift]->data;
  const auto columns = static_cast<double>(view.columns);
  for (int64_t row = 0; row < view.rows; ++row) {
    const int64_t start = row * view.columns;
    const double* x = context.inputs[0]->data.data() + start;
    const double* dy = context.inputs[3 + shift]->data.data() + start;
    const double mean = means[static_cast<size_t>(row)], rstd = rstds[static_cast<size_t>(row)];
    double mean_g = 0, mean_gn = 0;
    for (int64_t i = 0; i < view.columns; ++i) {
      const double g = dy[i] * (weight ? weight[i] : 1.0), n = (x[i] - mean) * rstd;
      mean_g += g / columns;
      mean_gn += g * n / columns;
      if (has_weight) context.outputs[1].data[static_cast<size_t>(i)] += dy[i] * n;
      if (has_bias) context.outputs.back().data[static_cast<size_t>(i)] += dy[i];
    }
    for (int64_t i = 0; i < view.columns; ++i) {
      const double g = dy[i] * (weight ? weight[i] : 1.0), n = (x[i] - mean) * rstd;
      const auto at = static_cast<size_t>(start + i);
      context.outputs[0].data[at] =
          rstd * (g - mean_g - n * mean_gn) + (has_residual ? context.inputs.back()->data[at] : 0.0);
    }
  }
}

std::vector<OpExample> examples() {
  const auto type = [](Shape shape) { return Type{DType::f32, shape}; };
  const Type x = type({2, 3, 5}), weight = type({5}), rows = type({2, 3});
  return {{{x, weight, rows, rows, x}, LayerNormGradAttributes{}},
          {{x, rows, rows, x}, LayerNormGradAttributes{1, false, false, false}},
          {{x, rows, rows, x, x}, LayerNormGradAttributes{1, false, true, true}},
          {{x, weight, rows, rows, x, x}, LayerNormGradAttributes{1, true, false, true}},
          {{x, type({3, 5}), type({2}), type({2}), x}, LayerNormGradAttributes{2, true, true, false}}};
}

}  // namespace

const OpDef kLayerNormGrad{
    .name = "layer_norm_grad",
    .infer = infer,
    .evaluate = evaluate,
    .parse_attributes = &parse_attributes<LayerNormGradAttributes>,
    .examples = examples,
};

LayerNormGradOutputs layer_norm_grad(Builder& builder, ValueId x, ValueId weight, ValueId mean, ValueId rstd,
                                     ValueId dy, ValueId residual, bool has_bias, int64_t axes) {
  const bool has_weight = weight != kNone, has_residual = residual != kNone;
  std::vector<ValueId> inputs{x};
  if (has_weight) inputs.push_back(weight);
  inputs.insert(inputs.end(), {mean, rstd, dy});
  if (has_residual) inputs.push_back(residual);
  const auto outputs = builder.add_many(kLayerNormGrad, std::move(inputs),
                                        LayerNormGradAttributes{axes, has_weight, has_bias, has_residual});
  return {outputs[0], has_weight ? outputs[1] : kNone, has_bias ? outputs.back() : kNone};
}

}  // namespace ingot
