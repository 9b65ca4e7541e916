#include "ops/rms_norm_grad.h"

#include "graph/storage.h"
#include "ops/axes.h"

namespace ingot {
namespace {

Result<std::vector<Type>> infer(std::span<const Type> inputs, const Attributes& attributes) {
  const auto& [has_weight, has_residual] = attributes.as<RmsNormGradAttributes>();
  const size_t count = 3 + (has_weight ? 1 : 0) + (has_residual ? 1 : 0);
  if (inputs.size() != count) return failed_error("{} inputs, expected {}", inputs.size(), count);
  const Shape& x = inputs[0].shape;
  if (x.rank() < 1) return failed_error("a scalar, expected at least one axis");
  size_t at = 1;
  const auto expect = [&](const char* what, const Shape& shape) -> Status {
    const Shape& found = inputs[at++].shape;
    if (!(found == shape))
      return failed_error("{} of shape {}, expected {}", what, found.to_string(), shape.to_string());
    return {};
  };
  if (has_weight) INGOT_TRY(expect("weight", trailing_shape(x)));
  INGOT_TRY(expect("rstd", leading_shape(x)));
  INGOT_TRY(expect("dy", x));
  if (has_residual) INGOT_TRY(expect("residual", x));
  std::vector<Type> out{computed(inputs[0])};
  if (has_weight) out.push_back({out[0].dtype, trailing_shape(x)});
  return out;
}

// With g = dy·weight and n = x·rstd: dx = rstd·(g - n·mean(g·n)).
void evaluate(const EvalContext& context) {
  const auto& [has_weight, has_residual] = context.node.attributes.as<RmsNormGradAttributes>();
  const RowsView view = rows_view(context.inputs[0]->shape);
  const size_t shift = has_weight ? 1 : 0;
  const double* weight = has_weight ? context.inputs[1]->data.data() : nullptr;
  for (int64_t row = 0; row < view.rows; ++row) {
    const int64_t start = row * view.columns;
    const double* x = context.inputs[0]->data.data() + start;
    const double* dy = context.inputs[2 + shift]->data.data() + start;
    const double rstd = context.inputs[1 + shift]->data[static_cast<size_t>(row)];
    double mean_gn = 0;
    for (int64_t i = 0; i < view.columns; ++i) {
      const double n = x[i] * rstd;
      mean_gn += dy[i] * (weight ? weight[i] : 1.0) * n / static_cast<double>(view.columns);
      if (has_weight) context.outputs[1].data[static_cast<size_t>(i)] += dy[i] * n;
    }
    for (int64_t i = 0; i < view.columns; ++i) {
      const double g = dy[i] * (weight ? weight[i] : 1.0);
      const auto at = static_cast<size_t>(start + i);
      context.outputs[0].data[at] =
          rstd * (g - x[i] * rstd * mean_gn) + (has_residual ? context.inputs.back()->data[at] : 0.0);
    }
  }
}

std::vector<OpExample> examples() {
  const auto type = [](Shape shape) { return Type{DType::f32, shape}; };
  const Type x = type({2, 3, 5}), weight = type({5}), rows = type({2, 3});
  return {{{x, weight, rows, x}, RmsNormGradAttributes{}},
          {{x, rows, x}, RmsNormGradAttributes{false, false}},
          {{x, weight, rows, x, x}, RmsNormGradAttributes{true, true}},
          {{x, rows, x, x}, RmsNormGradAttributes{false, true}}};
}

}  // namespace

const OpDef kRmsNormGrad{
    .name = "rms_norm_grad",
    .infer = infer,
    .evaluate = evaluate,
    .parse_attributes = &parse_attributes<RmsNormGradAttributes>,
    .examples = examples,
};

RmsNormGradOutputs rms_norm_grad(Builder& builder, ValueId x, ValueId weight, ValueId rstd, ValueId dy,
                                 ValueId residual) {
  const bool has_weight = weight != kNone, has_residual = residual != kNone;
  std::vector<ValueId> inputs{x};
  if (has_weight) inputs.push_back(weight);
  inputs.insert(inputs.end(), {rstd, dy});
  if (has_residual) inputs.push_back(residual);
  const auto outputs =
      builder.add_many(kRmsNormGrad, std::move(inputs), RmsNormGradAttributes{has_weight, has_residual});
  return {outputs[0], has_weight ? outputs[1] : kNone};
}

}  // namespace ingot
