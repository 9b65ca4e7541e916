#include "optim/optimizer_state.h"

#include <iterator>

#include "ops/adamw_8bit.h"

namespace ingot {

namespace {

std::vector<OptimizerState> adam_state(const std::string& name, const Type& type) {
  return {{name, "adam_m", type}, {name, "adam_v", type}};
}

std::vector<OptimizerState> adam_8bit_state(const std::string& name, const Type& type) {
  const Type codes{DType::u8, type.shape}, scales{DType::f32, {dynamic_blocks(type.shape.elements())}};
  return {{name, "adam_m_codes", codes},
          {name, "adam_v_codes", codes},
          {name, "adam_m_scales", scales},
          {name, "adam_v_scales", scales}};
}

std::vector<OptimizerState> adafactor_state(const std::string& name, const Type& type) {
  if (type.shape.rank() != 2) return {{name, "adafactor_v", type}};
  return {{name, "adafactor_rows", {DType::f32, {type.shape[0]}}},
          {name, "adafactor_columns", {DType::f32, {type.shape[1]}}}};
}

}  // namespace

bool is_quantized(const TrainedParameter& parameter, const OptimizerConfig& config) {
  return config.type == OptimizerType::adamw_8bit && parameter.type.shape.elements() >= kLeastQuantized;
}

std::vector<OptimizerState> optimizer_state(const TrainedParameter& parameter, const OptimizerConfig& config) {
  const auto& [name, type, is_hidden_matrix] = parameter;
  switch (config.type) {
    case OptimizerType::adamw:
      return adam_state(name, type);
    case OptimizerType::adamw_8bit:
      return is_quantized(parameter, config) ? adam_8bit_state(name, type) : adam_state(name, type);
    case OptimizerType::adafactor:
      return adafactor_state(name, type);
    case OptimizerType::muon:
      if (is_hidden_matrix) return {{name, "muon_m", type}};
      return adam_state(name, type);
    case OptimizerType::lion:
      return {{name, "lion_m", type}};
  }
  return {};
}

std::vector<OptimizerState> optimizer_state(std::span<const TrainedParameter> parameters,
                                            const OptimizerConfig& config) {
  std::vector<OptimizerState> all;
  for (const TrainedParameter& parameter : parameters) {
    auto one = optimizer_state(parameter, config);
    all.insert(all.end(), std::move_iterator(one.begin()), std::move_iterator(one.end()));
  }
  return all;
}

}  // namespace ingot
