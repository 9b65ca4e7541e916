#include "train/monitors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace ingot {

void RunningMedian::add(double value) {
  values_.push_back(value);
  if (values_.size() > kWindow) values_.pop_front();
}

double RunningMedian::median() const {
  if (values_.empty()) return 0;
  std::vector<double> sorted(values_.begin(), values_.end());
  std::sort(sorted.begin(), sorted.end());
  const size_t middle = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

Verdict Monitors::judge(const StepFigures& figures) {
  if (!std::isfinite(figures.loss) || !std::isfinite(figures.grad_norm)) return judge_non_finite(figures);
  consecutive_skips_ = 0;
  last_good_loss_ = figures.loss;
  last_good_step_ = figures.step;
  Verdict verdict;
  watch_loss(figures, verdict.warnings);
  watch_norm(figures, verdict.warnings);
  watch_speed(figures, verdict.warnings);
  return verdict;
}

std::string Monitors::last_good_step() const {
  if (last_good_step_ == 0) return "no step before it was finite";
  return fmt::format("the last finite loss was {} at step {}", last_good_loss_, last_good_step_);
}

Verdict Monitors::judge_non_finite(const StepFigures& figures) {
  if (figures.loss_scale) return judge_overflow(figures);
  const std::string what =
      fmt::format("step {}: the {} (loss {}, gradient norm {}, learning rate {})", figures.step,
                  std::isfinite(figures.loss) ? "gradient norm is not finite" : "loss is not finite", figures.loss,
                  figures.grad_norm, figures.learning_rate);
  const std::string advice =
      "the parameters are as before this step; training.mode=eager names the op that made it; a lower "
      "optimizer.learning_rate, a longer schedule.warmup_steps or a lower training.max_grad_norm may avoid it";
  if (config_.on_nan == OnNan::stop)
    return {StepAction::stop,
            fmt::format("{}; {}; {}; monitor.on_nan=skip would go on without it", what, last_good_step(), advice),
            {}};
  return skip_or_stop(what, advice);
}

Verdict Monitors::judge_overflow(const StepFigures& figures) {
  const bool has_loss = std::isfinite(figures.loss);
  if (has_loss && figures.loss_scale_can_fall) {
    consecutive_skips_ = 0;
    return {StepAction::skip,
            fmt::format("step {}: the gradients overflow at loss scale {}: the update is skipped and the scale lowered",
                        figures.step, *figures.loss_scale),
            {},
            true};
  }
  const std::string what = fmt::format(
      "step {}: the {} not finite at loss scale {}{} (loss {}, gradient norm {}, learning rate {})", figures.step,
      has_loss ? "gradients are" : "loss is", *figures.loss_scale, figures.loss_scale_can_fall ? "" : ", its minimum",
      figures.loss, figures.grad_norm, figures.learning_rate);
  const std::string advice = fmt::format(
      "the parameters are as before this step; {}training.precision=bf16 has the range of fp32 and needs no loss "
      "scale; "
      "a lower optimizer.learning_rate, a longer schedule.warmup_steps, a lower training.max_grad_norm{} or more kinds "
      "of op in training.fp32_ops may avoid it",
      has_loss ? "" : "no loss scale mends the forward pass; ",
      has_loss ? ", a lower training.loss_scale.minimum" : "");
  return skip_or_stop(what, advice);
}

Verdict Monitors::skip_or_stop(const std::string& what, const std::string& advice) {
  if (++consecutive_skips_ > config_.max_consecutive_skips)
    return {StepAction::stop,
            fmt::format("{}, after {} skipped steps in a row, as many as monitor.max_consecutive_skips allows; {}; {}",
                        what, consecutive_skips_ - 1, last_good_step(), advice),
            {}};
  return {StepAction::skip,
          fmt::format("{}: its update is skipped ({} in a row, at most {})", what, consecutive_skips_,
                      config_.max_consecutive_skips),
          {}};
}

void Monitors::watch_loss(const StepFigures& figures, std::vector<std::string>& warnings) {
  if (!config_.loss_spike || figures.counted_tokens == 0) return;  // a loss of nothing is 0 and says nothing
  const double usual = losses_.median();
  const bool spike = losses_.ready() && figures.loss > *config_.loss_spike * usual;
  if (spike && !std::exchange(spiking_, spike))
    warnings.push_back(fmt::format("step {}: the loss {} is more than {} times the median {} of the steps before",
                                   figures.step, figures.loss, *config_.loss_spike, usual));
  spiking_ = spike;
  losses_.add(figures.loss);
}

void Monitors::watch_norm(const StepFigures& figures, std::vector<std::string>& warnings) {
  if (!config_.grad_norm_range || figures.counted_tokens == 0) return;
  const auto [low, high] = *config_.grad_norm_range;
  const bool outside = figures.grad_norm < low || figures.grad_norm > high;
  if (outside && !out_of_range_)
    warnings.push_back(fmt::format("step {}: the gradient norm {} is outside monitor.grad_norm_range [{}, {}]",
                                   figures.step, figures.grad_norm, low, high));
  out_of_range_ = outside;
}

void Monitors::watch_speed(const StepFigures& figures, std::vector<std::string>& warnings) {
  if (!config_.throughput_drop || !(figures.tokens_per_second > 0)) return;
  const double usual = speeds_.median();
  const bool slow = speeds_.ready() && figures.tokens_per_second < (1 - *config_.throughput_drop) * usual;
  if (slow && !slow_)
    warnings.push_back(fmt::format("step {}: {:.0f} tokens/s, {:.0f}% below the median {:.0f} of the steps before",
                                   figures.step, figures.tokens_per_second,
                                   100 * (1 - figures.tokens_per_second / usual), usual));
  slow_ = slow;
  speeds_.add(figures.tokens_per_second);
}

}  // namespace ingot
