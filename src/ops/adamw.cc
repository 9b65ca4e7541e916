#include "ops/adamw.h"

#include <cmath>

#include "ops/optimizer_step.h"

namespace ingot {
namespace {

Result<std::vector<Type>> infer(std::span<const Type> inputs, const Attributes&) {
  INGOT_TRY(check_optimizer_inputs(inputs, 6, 2));
  return std::vector<Type>{inputs[0], inputs[2], inputs[3]};
}

void evaluate(const EvalContext& context) {
  const auto& a = context.node.attributes.as<AdamwAttributes>();
  const auto in = [&](size_t i) -> const std::vector<double>& { return context.inputs[i]->data; };
  for (size_t i = 0; i < 3; ++i) context.outputs[i].data = in(i == 0 ? 0 : i + 1);
  const auto &control = in(4), &clip = in(5);
  if (clip[1] != 0) return;
  const double rate = control[0] * a.learning_rate_scale;
  auto &param = context.outputs[0].data, &m = context.outputs[1].data, &v = context.outputs[2].data;
  for (size_t i = 0; i < param.size(); ++i) {
    const double g = in(1)[i] * clip[0];
    param[i] *= 1 - rate * a.weight_decay;
    m[i] = a.beta1 * m[i] + (1 - a.beta1) * g;
    v[i] = a.beta2 * v[i] + (1 - a.beta2) * g * g;
    param[i] -= rate / control[1] * m[i] / (std::sqrt(v[i]) / std::sqrt(control[2]) + a.eps);
  }
}

std::vector<OpExample> examples() {
  const Type w{DType::f32, {3, 5}};
  const auto example = [&](AdamwAttributes attributes, std::vector<double> clip) {
    std::vector<double> v;
    for (int i = 0; i < 15; ++i) v.push_back(0.01 * i);
    return optimizer_example(w, {{w}, {w, std::move(v)}}, attributes, {0.01, 0.271, 0.1426}, std::move(clip));
  };
  return {example({0.9, 0.95, 1e-8, 0.1, 1.0}, {1.0, 0.0, 0.5}), example({0.8, 0.99, 1e-6, 0.0, 0.5}, {0.25, 0.0, 4.0}),
          example({0.9, 0.95, 1e-8, 0.1, 1.0}, {0.0, 1.0, 0.0})};
}

}  // namespace

const OpDef kAdamw{
    .name = "adamw",
    .traits = {.in_place = {0, 2, 3}},
    .infer = infer,
    .evaluate = evaluate,
    .parse_attributes = &parse_attributes<AdamwAttributes>,
    .examples = examples,
};

std::array<ValueId, 3> adamw(Builder& builder, const AdamwInputs& inputs, AdamwAttributes attributes) {
  const auto outputs = builder.add_many(
      kAdamw, {inputs.param, inputs.grad, inputs.m, inputs.v, inputs.control, inputs.clip}, attributes);
  return {outputs[0], outputs[1], outputs[2]};
}

}  // namespace ingot
