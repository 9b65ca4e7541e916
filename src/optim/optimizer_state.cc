#include "optim/optimizer_state.h"

#include <iterator>

namespace ingot {

std::vector<OptimizerState> optimizer_state(const TrainedParameter& parameter, const OptimizerConfig& config) {
  const auto& [name, type] = parameter;
  switch (config.type) {
    case OptimizerType::adamw:
      return {{name, "adam_m", type}, {name, "adam_v", type}};
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
