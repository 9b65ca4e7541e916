// The learning rate of each optimizer step.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ingot {

enum class ScheduleType { cosine, linear, constant, wsd, inverse_sqrt, exponential, table };
enum class RateScaling { none, linear, sqrt };

// One point of a table schedule: at optimizer step `step` the rate is `factor` times the peak.
struct SchedulePoint {
  int64_t step = 0;
  double factor = 1;
  bool operator==(const SchedulePoint&) const = default;
};

// The section `schedule` of the configuration. What each type does with it is said at Schedule.
struct ScheduleConfig {
  ScheduleType type = ScheduleType::cosine;
  int64_t warmup_steps = 0;
  std::optional<double> warmup_ratio = {};  // of the run's steps, rounded up; instead of warmup_steps
  double min_lr_ratio = 0.1;                // the floor, as a part of the peak
  std::optional<int64_t> decay_steps = {};
  RateScaling lr_scaling = RateScaling::none;
  std::optional<int64_t> base_batch_size = {};  // the global batch size that learning_rate was chosen for
  std::vector<SchedulePoint> table = {};        // for type table: strictly rising steps
  bool operator==(const ScheduleConfig&) const = default;
};

// Whether the parts go together (a usage error where not); Schedule::make asks it too.
Status check_schedule(const ScheduleConfig& config);

// Step s counts optimizer steps, skipped ones too, and is 1 at the first, as metrics.csv has it; at(s) is the rate that
// step s updates with. A pure function of s: a resumed run has the rates of one that was never stopped.
// With w warm-up steps, T steps in all, r = min_lr_ratio, every type is peak * f(s), where in the warm-up
//   f(s) = s / w                     for 0 <= s <= w (f(w) = 1 exactly; f(0) = 0)
// and after it, with d = decay_steps or else T - w, and p = min(1, (s - w) / d):
//   cosine        r + (1 - r) * (1 + cos(pi * p)) / 2     (Loshchilov and Hutter, "SGDR", 2017; r exactly at p = 1)
//   linear        1 + (r - 1) * p
//   exponential   r ^ p
//   constant      1
//   inverse_sqrt  max(r, sqrt(max(w, 1) / s))             (Vaswani et al., "Attention Is All You Need", 2017)
//   wsd           1, and linearly to r over the last d steps; d = decay_steps or else a tenth of T, rounded up
//                 (Hu et al., "MiniCPM", 2024)
//   table         linear between the points, flat outside them; the warm-up is multiplied with it
// Beyond T cosine, linear, exponential and wsd stay at their floor. The rate never rises after the warm-up (tables
// apart).
class Schedule {
 public:
  // learning_rate: the configured one; lr_scaling multiplies it with (global_batch_size / base_batch_size) or its root.
  // total_steps >= 1. Errors: usage, where the parts contradict each other or the peak is not a finite positive number.
  static Result<Schedule> make(const ScheduleConfig& config, double learning_rate, int64_t total_steps,
                               int64_t global_batch_size);

  double at(int64_t step) const { return peak_ * factor(step); }
  double peak() const { return peak_; }
  int64_t warmup_steps() const { return warmup_; }

 private:
  double factor(int64_t step) const;
  double warmup_factor(int64_t step) const;
  double table_factor(int64_t step) const;
  double decayed(int64_t step) const;

  ScheduleConfig config_;
  double peak_ = 0;
  int64_t warmup_ = 0;
  int64_t decay_begin_ = 0;  // the last step at which the factor is 1
  int64_t decay_end_ = 0;    // the first step at which it is min_lr_ratio
};

}  // namespace ingot
