// The progress of a run: one line that is redrawn on a terminal, plain lines without control codes elsewhere.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>

namespace ingot {

struct ProgressFigures {
  int64_t step = 0;
  double loss = 0;
  double learning_rate = 0;
  double grad_norm = 0;
  double tokens_per_second = 0;
};

// Where progress goes and what time it is.
struct ProgressOutput {
  bool terminal = false;
  int width = 80;  // columns of the terminal; longer lines are cut, or they would not be redrawn in place
  std::function<void(std::string_view)> draw;     // terminal: the line with its control codes
  std::function<void(const std::string&)> print;  // elsewhere: a line, without its end
  std::function<double()> clock;                  // seconds, any origin
};

// stderr, a terminal or not; plain lines go through the log, so that log.txt has them too.
ProgressOutput progress_on_stderr();

// Not thread-safe.
class Progress {
 public:
  // done_steps: those that an earlier run made.
  Progress(int64_t total_steps, int64_t done_steps, ProgressOutput output);
  ~Progress() { finish(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Call after every step. A terminal's line is redrawn at most ten times a second; elsewhere a line is printed where
  // `logged`, which is what logging.every_steps says.
  void step(const ProgressFigures& figures, bool logged);
  // Takes the line off the terminal; call it before anything else is printed. The next step draws it again.
  void clear();
  // Leaves the last line standing and ends it.
  void finish();

 private:
  std::string line(const ProgressFigures& figures) const;
  double seconds_per_step() const;

  int64_t total_steps_;
  int64_t last_step_;
  ProgressOutput output_;
  std::deque<double> times_;  // when the last steps ended, the oldest first
  double drawn_at_ = -1e300;
  size_t drawn_ = 0;   // columns of the line on the terminal
  std::string shown_;  // the newest line, drawn or not
};

std::string duration_text(double seconds);  // "42s", "3m05s", "2h07m", "3d04h"

}  // namespace ingot
