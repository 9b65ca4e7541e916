#include "optim/loss_scale.h"

#include <algorithm>

#include "base/check.h"

namespace ingot {

LossScaler::LossScaler(const LossScaleConfig& config, const State& state) : config_(config), state_(state) {
  INGOT_CHECK(config.minimum > 0 && config.minimum <= kLargest && config.growth_interval >= 1,
              "a loss scale of at least {} that grows every {} steps", config.minimum, config.growth_interval);
  state_.scale = std::clamp(state_.scale, config.minimum, kLargest);
}

void LossScaler::overflowed() {
  state_ = {std::max(state_.scale * kBackoffFactor, config_.minimum), 0};
}

void LossScaler::stayed_finite() {
  if (++state_.clean_steps < config_.growth_interval) return;
  state_ = {std::min(state_.scale * kGrowthFactor, kLargest), 0};
}

}  // namespace ingot
