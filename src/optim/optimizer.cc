#include "optim/optimizer.h"

#include <cmath>

namespace ingot {

OptimizerConfig default_optimizer(OptimizerType type) {
  OptimizerConfig config;
  config.type = type;
  if (type == OptimizerType::lion) config.betas = {0.9, 0.99};
  return config;
}

std::array<float, 3> update_control(double learning_rate, const OptimizerConfig& config, int64_t t) {
  const auto steps = static_cast<double>(t);
  if (config.type == OptimizerType::adafactor) {
    const double rest = std::pow(steps, -0.8);
    return {static_cast<float>(learning_rate), static_cast<float>(1 - rest), static_cast<float>(rest)};
  }
  return {static_cast<float>(learning_rate), static_cast<float>(1 - std::pow(config.betas[0], steps)),
          static_cast<float>(1 - std::pow(config.betas[1], steps))};
}

}  // namespace ingot
