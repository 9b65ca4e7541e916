#include "ops/residual_layer_norm.h"

#include "ops/layer_norm.h"
#include "ops/residual_norm.h"

namespace ingot {
namespace {

ResidualNorm parts_of(const Attributes& attributes) {
  const auto& a = attributes.as<ResidualLayerNormAttributes>();
  return {kLayerNorm, LayerNormAttributes{a.axes, a.eps, a.has_weight, a.has_bias}, a.dropout, a.stream};
}

Result<std::vector<Type>> infer(std::span<const Type> inputs, const Attributes& attributes) {
  return infer_residual_norm(parts_of(attributes), inputs);
}

void evaluate(const EvalContext& context) {
  evaluate_residual_norm(parts_of(context.node.attributes), context);
}

std::vector<OpExample> examples() {
  const Type x{DType::f32, {2, 3, 5}}, w{DType::f32, {5}};
  return {{{x, x, w, w}, ResidualLayerNormAttributes{1, 1e-5, true, true, 0.0, ""}},
          {{x, x, w}, ResidualLayerNormAttributes{1, 1e-5, true, false, 0.0, ""}},
          {{x, x, w, w}, ResidualLayerNormAttributes{1, 1e-5, true, true, 0.25, "h.0.drop"}},
          {{x, x}, ResidualLayerNormAttributes{1, 1e-3, false, false, 0.0, ""}}};
}

}  // namespace

const OpDef kResidualLayerNorm{
    .name = "residual_layer_norm",
    .traits = {.saved_outputs = 2, .random = true, .in_place = {0}, .fused = true},
    .infer = infer,
    .evaluate = evaluate,
    .parse_attributes = &parse_attributes<ResidualLayerNormAttributes>,
    .examples = examples,
};

}  // namespace ingot
