#include "ops/muon.h"

#include "ops/optimizer_step.h"

namespace ingot {
namespace {

Result<std::vector<Type>> infer_momentum(std::span<const Type> inputs, const Attributes&) {
  if (inputs.size() != 3) return failed_error("{} inputs, expected grad, m and clip", inputs.size());
  if (!(inputs[0] == inputs[1]))
    return failed_error("the gradient is {}, m {}", inputs[0].to_string(), inputs[1].to_string());
  if (!(inputs[2] == Type{DType::f32, {3}})) return failed_error("clip is {}, expected f32[3]", inputs[2].to_string());
  return std::vector<Type>{inputs[1], inputs[1]};
}

void evaluate_momentum(const EvalContext& context) {
  const double mu = context.node.attributes.as<MuonMomentumAttributes>().momentum;
  const std::vector<double>&grad = context.inputs[0]->data, &clip = context.inputs[2]->data;
  auto &m = context.outputs[0].data, &direction = context.outputs[1].data;
  m = context.inputs[1]->data;
  if (clip[1] != 0) return;
  for (size_t i = 0; i < m.size(); ++i) {
    const double g = grad[i] * clip[0];
    m[i] = mu * m[i] + (1 - mu) * g;
    direction[i] = mu * m[i] + (1 - mu) * g;
  }
}

Result<std::vector<Type>> infer_step(std::span<const Type> inputs, const Attributes&) {
  INGOT_TRY(check_optimizer_inputs(inputs, 4, 0));
  return std::vector<Type>{inputs[0]};
}

void evaluate_step(const EvalContext& context) {
  const auto& a = context.node.attributes.as<MuonAttributes>();
  const std::vector<double>&direction = context.inputs[1]->data, &control = context.inputs[2]->data;
  auto& param = context.outputs[0].data;
  param = context.inputs[0]->data;
  if (context.inputs[3]->data[1] != 0) return;
  const double rate = control[0] * a.learning_rate_scale;
  for (size_t i = 0; i < param.size(); ++i)
    param[i] = (1 - rate * a.weight_decay) * param[i] - rate * a.scale * direction[i];
}

}  // namespace

const OpDef kMuonMomentum{
    .name = "muon_momentum",
    .traits = {.in_place = {1, kNone}},
    .infer = infer_momentum,
    .evaluate = evaluate_momentum,
    .parse_attributes = &parse_attributes<MuonMomentumAttributes>,
    .examples =
        [] {
          const Type w{DType::f32, {3, 5}}, clip{DType::f32, {3}};
          return std::vector<OpExample>{{{w, w, clip}, MuonMomentumAttributes{0.95}, {{}, {}, {0.5, 0, 2}}},
                                        {{w, w, clip}, MuonMomentumAttributes{0.0}, {{}, {}, {1, 0, 0.5}}},
                                        {{w, w, clip}, MuonMomentumAttributes{0.95}, {{}, {}, {0, 1, 0}}}};
        },
};

const OpDef kMuon{
    .name = "muon",
    .traits = {.in_place = {0}},
    .infer = infer_step,
    .evaluate = evaluate_step,
    .parse_attributes = &parse_attributes<MuonAttributes>,
    .examples =
        [] {
          const Type w{DType::f32, {3, 5}};
          return std::vector<OpExample>{
              optimizer_example(w, {}, MuonAttributes{0.5, 0.1, 1.0}, {0.1, 0.2, 0.3}, {1, 0, 0.5}),
              optimizer_example(w, {}, MuonAttributes{2.0, 0.0, 0.5}, {0.1, 0.2, 0.3}, {0.5, 0, 2}),
              optimizer_example(w, {}, MuonAttributes{}, {0.1, 0.2, 0.3}, {0, 1, 0})};
        },
};

std::array<ValueId, 2> muon_momentum(Builder& builder, ValueId grad, ValueId m, ValueId clip,
                                     MuonMomentumAttributes attributes) {
  const auto outputs = builder.add_many(kMuonMomentum, {grad, m, clip}, attributes);
  return {outputs[0], outputs[1]};
}

ValueId muon(Builder& builder, ValueId param, ValueId direction, ValueId control, ValueId clip,
             MuonAttributes attributes) {
  return builder.add(kMuon, {param, direction, control, clip}, attributes);
}

}  // namespace ingot
