#include "optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/check.h"

namespace ingot {
namespace {

// Up, except for what is a whole number but for the rounding of the product (0.1 * 30 is 3, not 4).
int64_t ceil_part(double ratio, int64_t steps) {
  const double product = ratio * static_cast<double>(steps);
  return static_cast<int64_t>(std::ceil(product - 1e-9 * std::max(1.0, product)));
}

double batch_scale(const ScheduleConfig& config, int64_t global_batch_size) {
  if (config.lr_scaling == RateScaling::none) return 1;
  const double ratio = static_cast<double>(global_batch_size) / static_cast<double>(*config.base_batch_size);
  return config.lr_scaling == RateScaling::linear ? ratio : std::sqrt(ratio);
}

}  // namespace

Status check_schedule(const ScheduleConfig& config) {
  if (config.warmup_ratio && config.warmup_steps > 0)
    return usage_error("schedule.warmup_steps and schedule.warmup_ratio are both set: keep one of them");
  if (config.lr_scaling != RateScaling::none && !config.base_batch_size)
    return usage_error("schedule.lr_scaling needs schedule.base_batch_size, the batch that the rate was chosen for");
  const bool decays = config.type != ScheduleType::constant && config.type != ScheduleType::inverse_sqrt &&
                      config.type != ScheduleType::table;
  if (config.decay_steps && !decays)
    return usage_error("schedule.decay_steps is for the types cosine, linear, exponential and wsd: set it to null");
  if (config.type == ScheduleType::exponential && !(config.min_lr_ratio > 0))
    return usage_error("schedule.type exponential never reaches 0: schedule.min_lr_ratio must be above 0");
  if ((config.type == ScheduleType::table) == config.table.empty())
    return usage_error("schedule.table must have points where schedule.type is table, and only there");
  for (size_t i = 1; i < config.table.size(); ++i)
    if (config.table[i].step <= config.table[i - 1].step)
      return usage_error("schedule.table: steps must rise, but step {} follows step {}", config.table[i].step,
                         config.table[i - 1].step);
  return {};
}

Result<Schedule> Schedule::make(const ScheduleConfig& config, double learning_rate, int64_t total_steps,
                                int64_t global_batch_size) {
  INGOT_CHECK(total_steps >= 1 && global_batch_size >= 1, "a schedule of {} steps with a batch of {}", total_steps,
              global_batch_size);
  INGOT_TRY(check_schedule(config));
  Schedule schedule;
  schedule.config_ = config;
  schedule.peak_ = learning_rate * batch_scale(config, global_batch_size);
  if (!std::isfinite(schedule.peak_) || schedule.peak_ <= 0)
    return usage_error(
        "the peak learning rate is {} (optimizer.learning_rate {}, scaled for a batch of {}): expected a "
        "finite number above 0",
        schedule.peak_, learning_rate, global_batch_size);
  schedule.warmup_ = config.warmup_ratio ? ceil_part(*config.warmup_ratio, total_steps) : config.warmup_steps;
  const int64_t warmup = schedule.warmup_;
  if (config.type == ScheduleType::wsd) {
    const int64_t decay = config.decay_steps.value_or(ceil_part(0.1, total_steps));
    schedule.decay_end_ = total_steps;
    schedule.decay_begin_ = std::max(warmup, total_steps - decay);
  } else {
    schedule.decay_begin_ = warmup;
    schedule.decay_end_ = config.decay_steps ? warmup + *config.decay_steps : std::max(total_steps, warmup);
  }
  return schedule;
}

double Schedule::warmup_factor(int64_t step) const {
  if (step >= warmup_) return 1;
  return static_cast<double>(std::max<int64_t>(step, 0)) / static_cast<double>(warmup_);
}

double Schedule::factor(int64_t step) const {
  if (config_.type == ScheduleType::table) return warmup_factor(step) * table_factor(step);
  return step <= warmup_ ? warmup_factor(step) : decayed(step);
}

double Schedule::table_factor(int64_t step) const {
  const auto& table = config_.table;
  const auto after = std::upper_bound(table.begin(), table.end(), step,
                                      [](int64_t s, const SchedulePoint& point) { return s < point.step; });
  if (after == table.begin()) return table.front().factor;
  if (after == table.end()) return table.back().factor;
  const SchedulePoint& before = *(after - 1);
  const double part = static_cast<double>(step - before.step) / static_cast<double>(after->step - before.step);
  return before.factor + (after->factor - before.factor) * part;
}

double Schedule::decayed(int64_t step) const {  // step > warmup_
  const double floor = config_.min_lr_ratio;
  if (config_.type == ScheduleType::constant) return 1;
  if (config_.type == ScheduleType::inverse_sqrt)
    return std::max(floor, std::sqrt(static_cast<double>(std::max<int64_t>(warmup_, 1)) / static_cast<double>(step)));
  if (step <= decay_begin_) return 1;
  if (step >= decay_end_) return floor;  // exactly, whatever the formula rounds to
  const double part = static_cast<double>(step - decay_begin_) / static_cast<double>(decay_end_ - decay_begin_);
  if (config_.type == ScheduleType::cosine) return floor + (1 - floor) * 0.5 * (1 + std::cos(std::numbers::pi * part));
  if (config_.type == ScheduleType::exponential) return std::pow(floor, part);
  return 1 + (floor - 1) * part;
}

}  // namespace ingot
