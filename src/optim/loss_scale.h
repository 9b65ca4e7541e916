// Dynamic loss scaling: the loss is multiplied by a scale before the backward pass, so that gradients too small for
// fp16 are not lost, and the update divides the gradients by it again (update_graph.h). After Micikevicius et al.,
// "Mixed Precision Training", 2018: a step whose gradients overflow is skipped and halves the scale; `growth_interval`
// steps in a row without an overflow double it.
#pragma once

#include <cstdint>

namespace ingot {

// The section `training.loss_scale` of the configuration.
struct LossScaleConfig {
  double initial = 65536;          // minimum to LossScaler::kLargest; powers of two change no bit of what they scale
  int64_t growth_interval = 1000;  // 1 or more
  double minimum = 1;              // LossScaler::kSmallest to initial
  bool operator==(const LossScaleConfig&) const = default;
};

// Plain arithmetic, the same on every rank that sees the same steps. Not thread-safe.
class LossScaler {
 public:
  // No scale is larger: losses and gradients times it are finite in fp32 still.
  static constexpr double kLargest = 0x1p64;
  // A smaller one makes gradients vanish in fp16, where it can only be meant by mistake.
  static constexpr double kSmallest = 0x1p-24;
  static constexpr double kGrowthFactor = 2, kBackoffFactor = 0.5;

  // What a run that goes on needs of the one before.
  struct State {
    double scale = 1;
    int64_t clean_steps = 0;  // in a row, since the scale last changed
    bool operator==(const State&) const = default;
  };

  explicit LossScaler(const LossScaleConfig& config) : LossScaler(config, {config.initial, 0}) {}
  // A saved scale outside of the configuration's range is moved to its nearer end.
  LossScaler(const LossScaleConfig& config, const State& state);

  double scale() const { return state_.scale; }  // of the next step
  bool is_at_minimum() const { return state_.scale <= config_.minimum; }
  const State& state() const { return state_; }

  // What the step at this scale did.
  void overflowed();
  void stayed_finite();

 private:
  LossScaleConfig config_;
  State state_;
};

}  // namespace ingot
