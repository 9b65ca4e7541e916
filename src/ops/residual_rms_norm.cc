#include "ops/residual_rms_norm.h"

#include "ops/dropout.h"
#include "ops/interpret.h"
#include "ops/rms_norm.h"

namespace ingot {
namespace {

RmsNormAttributes norm_of(const ResidualRmsNormAttributes& a) {
  return {a.eps, a.has_weight};
}

// rms_norm's inputs: the sum in place of x and delta, then weight.
template <class T>
std::vector<T> norm_inputs(const T& sum, std::span<const T> inputs) {
  std::vector<T> result{sum};
  result.insert(result.end(), inputs.begin() + 2, inputs.end());
  return result;
}

Result<std::vector<Type>> infer(std::span<const Type> inputs, const Attributes& attributes) {
  const auto& a = attributes.as<ResidualRmsNormAttributes>();
  if (inputs.size() < 2 || !(inputs[0] == inputs[1])) return failed_error("expected x and delta of one type");
  if (!(a.dropout >= 0 && a.dropout < 1)) return failed_error("dropout {}, expected within [0, 1)", a.dropout);
  INGOT_ASSIGN(std::vector<Type> types, kRmsNorm.infer(norm_inputs(inputs[0], inputs), norm_of(a)));
  types.insert(types.begin(), inputs[0]);
  return types;
}

void evaluate(const EvalContext& context) {
  const auto& a = context.node.attributes.as<ResidualRmsNormAttributes>();
  std::vector<Type> types;
  std::vector<RefTensor> inputs;
  for (size_t i = 0; i < context.inputs.size(); ++i) {
    types.push_back(context.graph.type(context.node.inputs[i]));
    inputs.push_back(*context.inputs[i]);
  }
  RefTensor sum = evaluate_op(kDropout, DropoutAttributes{a.dropout, a.stream}, std::span(types).subspan(1, 1),
                              std::span(inputs).subspan(1, 1), context.random)[0];
  for (size_t i = 0; i < sum.data.size(); ++i) sum.data[i] += inputs[0].data[i];
  auto normed = evaluate_op(kRmsNorm, norm_of(a), norm_inputs<Type>(types[0], types),
                            norm_inputs<RefTensor>(sum, inputs), context.random);
  context.outputs[0].data = std::move(sum.data);
  for (size_t i = 0; i < normed.size(); ++i) context.outputs[i + 1].data = std::move(normed[i].data);
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
