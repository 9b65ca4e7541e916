// What a run's own figures say about its health: non-finite steps, spikes of the loss, norms out of range, lost speed.
// Pure logic without clock, files or log; only non-finite steps ever change what the run does.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "train/config.h"

namespace ingot {

// Figures of a step before its update is applied.
struct StepFigures {
  int64_t step = 0;
  int64_t counted_tokens = 0;
  double loss = 0;
  double grad_norm = 0;  // before clipping
  double learning_rate = 0;
  double tokens_per_second = 0;  // 0: not known
  // Under dynamic loss scaling: the scale of this step, and whether a lower one is left to try.
  std::optional<double> loss_scale = {};
  bool loss_scale_can_fall = false;
};

enum class StepAction {
  proceed,  // apply the update
  skip,     // leave parameters and optimizer state as they are and go on
  stop      // leave them, save nothing of this step, and end the run with `diagnosis`
};

struct Verdict {
  StepAction action = StepAction::proceed;
  std::string diagnosis;              // for skip and stop: what happened, and for stop what to do
  std::vector<std::string> warnings;  // for the log
  bool is_expected = false;           // a skip by which the loss scale finds its size: no cause for concern
};

// The median of the last values, ready once there are enough of them.
class RunningMedian {
 public:
  static constexpr size_t kWindow = 64, kEnough = 16;
  void add(double value);
  bool ready() const { return values_.size() >= kEnough; }
  double median() const;  // 0 without any value

 private:
  std::deque<double> values_;
};

// Judges step after step. Not thread-safe.
//   on_nan           a loss or gradient norm that is NaN or infinite: stop, or skip while at most max_consecutive_skips
//                    steps in a row are (the one after those stops). Under dynamic loss scaling on_nan is not asked:
//                    each such step is skipped, and counts in that row only where no lower scale can mend it, because
//                    none is left or because the loss itself is not finite
//   loss_spike       f: warns where the loss is above f times the median of the 64 finite losses before (16 at least);
//                    the median, because a mean would be moved by the spike itself and by the fall of a run's beginning
//   grad_norm_range  [low, high]: warns where the norm lies outside
//   throughput_drop  d: warns where tokens per second are below (1 - d) times the median of the 64 steps before (16 at
//   least)
// A warning comes when a condition begins, not again while it lasts.
class Monitors {
 public:
  explicit Monitors(const MonitorSection& config) : config_(config) {}
  // Of a run that goes on: skipped steps right before it was saved count towards max_consecutive_skips.
  void resume(int64_t consecutive_skips) { consecutive_skips_ = consecutive_skips; }

  Verdict judge(const StepFigures& figures);
  int64_t consecutive_skips() const { return consecutive_skips_; }

 private:
  Verdict judge_non_finite(const StepFigures& figures);
  Verdict judge_overflow(const StepFigures& figures);
  Verdict skip_or_stop(const std::string& what, const std::string& advice);
  std::string last_good_step() const;
  void watch_loss(const StepFigures& figures, std::vector<std::string>& warnings);
  void watch_norm(const StepFigures& figures, std::vector<std::string>& warnings);
  void watch_speed(const StepFigures& figures, std::vector<std::string>& warnings);

  MonitorSection config_;
  int64_t consecutive_skips_ = 0;
  double last_good_loss_ = 0;
  int64_t last_good_step_ = 0;
  RunningMedian losses_, speeds_;
  bool spiking_ = false, out_of_range_ = false, slow_ = false;
};

}  // namespace ingot
