#include "train/config_optimizer.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace ingot {
namespace {

// The keys beside type, learning_rate, weight_decay and groups, which every type reads.
std::vector<std::string_view> keys_of(OptimizerType type) {
  switch (type) {
    case OptimizerType::adamw:
    case OptimizerType::adamw_8bit:
      return {"betas", "eps"};
    case OptimizerType::adafactor:
      return {"relative_step"};
    case OptimizerType::muon:
      return {"betas", "eps", "momentum"};
    case OptimizerType::lion:
      return {"betas"};
  }
  return {};
}

bool reads(OptimizerType type, std::string_view key) {
  const auto keys = keys_of(type);
  return std::ranges::find(keys, key) != keys.end();
}

}  // namespace

Status check_optimizer(const OptimizerSection& optimizer) {
  const std::pair<std::string_view, bool> given[] = {{"betas", optimizer.betas.has_value()},
                                                     {"eps", optimizer.eps.has_value()},
                                                     {"momentum", optimizer.momentum.has_value()},
                                                     {"relative_step", optimizer.relative_step}};
  for (const auto& [key, is_given] : given)
    if (is_given && !reads(optimizer.type, key))
      return usage_error(
          "optimizer.{} is set, but optimizer.type {} does not read it; beside type, learning_rate, "
          "weight_decay and groups it reads {}",
          key, name_of(optimizer.type), fmt::join(keys_of(optimizer.type), ", "));
  return {};
}

void fill_in_defaults(OptimizerSection& optimizer) {
  const OptimizerConfig values = optimizer.resolved();
  if (reads(optimizer.type, "betas")) optimizer.betas = values.betas;
  if (reads(optimizer.type, "eps")) optimizer.eps = values.eps;
  if (reads(optimizer.type, "momentum")) optimizer.momentum = values.momentum;
}

OptimizerConfig OptimizerSection::resolved() const {
  OptimizerConfig config = default_optimizer(type);
  config.betas = betas.value_or(config.betas);
  config.eps = eps.value_or(config.eps);
  config.momentum = momentum.value_or(config.momentum);
  config.relative_step = relative_step;
  return config;
}

}  // namespace ingot
