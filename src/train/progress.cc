#include "train/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>

#include "base/log.h"

namespace ingot {
namespace {

constexpr size_t kWindow = 50;  // steps that the remaining time is estimated from
constexpr double kSecondsPerDraw = 0.1;

}  // namespace

ProgressOutput progress_on_stderr() {
  ProgressOutput output;
  output.terminal = ::isatty(STDERR_FILENO) == 1;
  struct winsize size {};
  if (output.terminal && ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) output.width = size.ws_col;
  output.draw = [](std::string_view text) {
    std::fwrite(text.data(), 1, text.size(), stderr);
    std::fflush(stderr);
  };
  output.print = [](const std::string& line) { log_line(LogLevel::info, line); };
  output.clock = [] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  };
  return output;
}

Progress::Progress(int64_t total_steps, int64_t done_steps, ProgressOutput output)
    : total_steps_(total_steps), last_step_(done_steps), output_(std::move(output)) {
  times_.push_back(output_.clock());
}

void Progress::step(const ProgressFigures& figures, bool logged) {
  const double now = output_.clock();
  times_.push_back(now);
  if (times_.size() > kWindow + 1) times_.pop_front();
  last_step_ = figures.step;
  if (!output_.terminal) {
    if (logged) output_.print(line(figures));
    return;
  }
  shown_ = line(figures);
  shown_.resize(std::min(shown_.size(), static_cast<size_t>(std::max(output_.width - 1, 1))));
  if (now - drawn_at_ < kSecondsPerDraw) return;
  drawn_at_ = now;
  const size_t before = std::exchange(drawn_, shown_.size());
  output_.draw(fmt::format("\r{:{}}", shown_, std::max(before, drawn_)));  // spaces over what was longer
}

void Progress::clear() {
  if (drawn_ == 0) return;
  output_.draw(fmt::format("\r{:{}}\r", "", std::exchange(drawn_, 0)));
  drawn_at_ = -1e300;
}

void Progress::finish() {
  if (shown_.empty()) return;
  output_.draw(fmt::format("\r{:{}}\n", shown_, std::max(drawn_, shown_.size())));
  shown_.clear();
  drawn_ = 0;
}

double Progress::seconds_per_step() const {
  return (times_.back() - times_.front()) / static_cast<double>(times_.size() - 1);
}

std::string Progress::line(const ProgressFigures& figures) const {
  const int64_t total = std::max(total_steps_, figures.step);
  const double percent = 100.0 * static_cast<double>(figures.step) / static_cast<double>(total);
  const double remaining = seconds_per_step() * static_cast<double>(total - figures.step);
  return fmt::format("step {}/{} ({:.0f}%)  loss {:.4f}  lr {:.3e}  grad {:.3g}  {:.0f} tokens/s  eta {}", figures.step,
                     total, std::floor(percent), figures.loss, figures.learning_rate, figures.grad_norm,
                     figures.tokens_per_second, duration_text(remaining));
}

std::string duration_text(double seconds) {
  if (!(seconds >= 0) || seconds > 1e9) return "?";
  const auto s = static_cast<int64_t>(std::llround(seconds));
  if (s < 60) return fmt::format("{}s", s);
  if (s < 3600) return fmt::format("{}m{:02}s", s / 60, s % 60);
  if (s < 86400) return fmt::format("{}h{:02}m", s / 3600, s % 3600 / 60);
  return fmt::format("{}d{:02}h", s / 86400, s % 86400 / 3600);
}

}  // namespace ingot
