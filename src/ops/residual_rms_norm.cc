#include "ops/residual_rms_norm.h"

#include "ops/residual_norm.h"
#include "ops/rms_norm.h"

namespace ingot {
namespace {

ResidualNorm parts_of(const Attributes& attributes) {
  const auto& a = attributes.as<ResidualRmsNormAttributes>();
  return {kRmsNorm, RmsNormAttributes{a.eps, a.has_weight}, a.dropout, a.stream};
}

Result<std::vector<Type>> infer(std::span<const Type> inputs, const Attributes& attributes) {
  return infer_residual_norm(parts_of(attributes), inputs);
}

void evaluate(const EvalContext& context) {
  evaluate_residual_norm(parts_of(context.node.attributes), context);
}

std::vector<OpExample> examples() {
  const Type x{DType::f32, {2, 3, 5}}, w{DType::f32, {5}};
  return {{{x, x, w}, ResidualRmsNormAttributes{1e-6, true, 0.0, ""}},
          {{x, x, w}, ResidualRmsNormAttributes{1e-5, true, 0.25, "layers.0.drop"}},
          {{x, x}, ResidualRmsNormAttributes{1e-3, false, 0.0, ""}}};
}

}  // namespace

const OpDef kResidualRmsNorm{
    .name = "residual_rms_norm",
    .traits = {.saved_outputs = 1, .random = true, .in_place = {0}, .fused = true},
    .infer = infer,
    .evaluate = evaluate,
    .parse_attributes = &parse_attributes<ResidualRmsNormAttributes>,
    .examples = examples,
};

}  // namespace ingot
