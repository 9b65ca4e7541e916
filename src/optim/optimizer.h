// The optimizers and their settings.
#pragma once

#include <array>
#include <cstdint>

namespace ingot {

enum class OptimizerType { adamw, lion, adafactor, muon, adamw_8bit };

// Settings beside rate, decay, groups and clipping, which all have; docs/optimizers.md says which type reads which.
struct OptimizerConfig {
  OptimizerType type = OptimizerType::adamw;
  std::array<double, 2> betas = {0.9, 0.95};
  double eps = 1e-8;
  double momentum = 0.95;      // muon
  bool relative_step = false;  // adafactor: steps relative to the parameter's root mean square
};

// With the values of the type's paper.
OptimizerConfig default_optimizer(OptimizerType type);

// The content of the update program's input "control" for the t-th update (1 at the first): the learning rate and what
// else changes from step to step: 1 - beta1^t and 1 - beta2^t; for adafactor 1 - t^-0.8 and t^-0.8.
std::array<float, 3> update_control(double learning_rate, const OptimizerConfig& config, int64_t t);

}  // namespace ingot
