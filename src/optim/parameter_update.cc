#include "optim/parameter_update.h"

#include <array>
#include <span>

#include "ops/adafactor.h"
#include "ops/adamw.h"
#include "ops/adamw_8bit.h"
#include "ops/lion.h"
#include "ops/muon.h"
#include "optim/muon.h"

namespace ingot {
namespace {

void store(Builder& builder, const UpdateInputs& in, std::span<const ValueId> updated) {
  builder.store(in.param, updated[0]);
  for (size_t i = 0; i < in.state.size(); ++i) builder.store(in.state[i], updated[i + 1]);
}

AdamwAttributes adamw_attributes(const ParameterSettings& settings, const OptimizerConfig& config) {
  return {config.betas[0], config.betas[1], config.eps, settings.weight_decay, settings.learning_rate_scale};
}

void add_adamw(Builder& builder, const UpdateInputs& in, const AdamwAttributes& attributes) {
  store(builder, in, adamw(builder, {in.param, in.grad, in.state[0], in.state[1], in.control, in.clip}, attributes));
}

void add_adafactor(Builder& builder, const UpdateInputs& in, const AdafactorAttributes& attributes) {
  if (in.state.size() == 1)
    return store(builder, in,
                 adafactor_vector(builder, {in.param, in.grad, in.state[0], in.control, in.clip}, attributes));
  store(builder, in,
        adafactor(builder, {in.param, in.grad, in.state[0], in.state[1], in.control, in.clip}, attributes));
}

void add_muon(Builder& builder, const UpdateInputs& in, const ParameterSettings& settings, double momentum) {
  const auto [m, direction] = muon_momentum(builder, in.grad, in.state[0], in.clip, {momentum});
  const MuonAttributes attributes{muon_scale(builder.shape(in.param)), settings.weight_decay,
                                  settings.learning_rate_scale};
  const ValueId updated = muon(builder, in.param, orthogonalize(builder, direction), in.control, in.clip, attributes);
  store(builder, in, std::array{updated, m});
}

}  // namespace

void add_parameter_update(Builder& builder, const UpdateInputs& in, const ParameterSettings& settings,
                          const OptimizerConfig& config, const TrainedParameter& parameter) {
  switch (config.type) {
    case OptimizerType::adamw:
      return add_adamw(builder, in, adamw_attributes(settings, config));
    case OptimizerType::adamw_8bit:
      if (!is_quantized(parameter, config)) return add_adamw(builder, in, adamw_attributes(settings, config));
      return store(
          builder, in,
          adamw_8bit(builder,
                     {in.param, in.grad, in.state[0], in.state[1], in.state[2], in.state[3], in.control, in.clip},
                     adamw_attributes(settings, config)));
    case OptimizerType::adafactor:
      return add_adafactor(builder, in, {settings.weight_decay, settings.learning_rate_scale, config.relative_step});
    case OptimizerType::muon:
      if (parameter.is_hidden_matrix) return add_muon(builder, in, settings, config.momentum);
      return add_adamw(builder, in, adamw_attributes(settings, config));
    case OptimizerType::lion:
      return store(builder, in,
                   lion(builder, {in.param, in.grad, in.state[0], in.control, in.clip},
                        {config.betas[0], config.betas[1], settings.weight_decay, settings.learning_rate_scale}));
  }
}

}  // namespace ingot
