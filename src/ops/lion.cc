#include "ops/lion.h"

#include "ops/optimizer_step.h"

namespace ingot {
namespace {

Result<std::vector<Type>> infer(std::span<const Type> inputs, const Attributes&) {
  INGOT_TRY(check_optimizer_inputs(inputs, 5, 1));
  return std::vector<Type>{inputs[0], inputs[2]};
}

double sign(double x) {
  return x > 0 ? 1 : x < 0 ? -1 : 0;
}

void evaluate(const EvalContext& context) {
  const auto& a = context.node.attributes.as<LionAttributes>();
  const auto in = [&](size_t i) -> const std::vector<double>& { return context.inputs[i]->data; };
  auto &param = context.outputs[0].data, &m = context.outputs[1].data;
  param = in(0);
  m = in(2);
  const auto &control = in(3), &clip = in(4);
  if (clip[1] != 0) return;
  const double rate = control[0] * a.learning_rate_scale;
  for (size_t i = 0; i < param.size(); ++i) {
    const double g = in(1)[i] * clip[0];
    param[i] = param[i] * (1 - rate * a.weight_decay) - rate * sign(a.beta1 * m[i] + (1 - a.beta1) * g);
    m[i] = a.beta2 * m[i] + (1 - a.beta2) * g;
  }
}

std::vector<OpExample> examples() {
  const Type w{DType::f32, {3, 5}};
  const auto example = [&](LionAttributes attributes, std::vector<double> clip) {
    return optimizer_example(w, {{w}}, attributes, {0.01, 1, 1}, std::move(clip));
  };
  return {example({0.9, 0.99, 0.1, 1.0}, {1.0, 0.0, 0.5}), example({0.8, 0.95, 0.0, 0.5}, {0.25, 0.0, 4.0}),
          example({0.9, 0.99, 0.1, 1.0}, {0.0, 1.0, 0.0})};
}

}  // namespace

const OpDef kLion{
    .name = "lion",
    .traits = {.in_place = {0, 2}},
    .infer = infer,
    .evaluate = evaluate,
    .parse_attributes = &parse_attributes<LionAttributes>,
    .examples = examples,
};

std::array<ValueId, 2> lion(Builder& builder, const LionInputs& inputs, LionAttributes attributes) {
  const auto outputs =
      builder.add_many(kLion, {inputs.param, inputs.grad, inputs.m, inputs.control, inputs.clip}, attributes);
  return {outputs[0], outputs[1]};
}

}  // namespace ingot
