// What a profile says: the ops by time, held against what the machine can do; where time was lost.
#pragma once

#include <string>
#include <vector>

#include "cost/estimate.h"
#include "runtime/profile.h"

namespace ingot {

// Ops shorter than this take about as long as starting the threads for them.
inline constexpr int64_t kTinyOp = 10'000;  // ns
// Shorter pauses between ops are the executor's way from one to the next.
inline constexpr int64_t kGap = 10'000;  // ns

// All calls of one op, by one kernel, at one place in the model.
struct OpTotals {
  std::string op, kernel, source;  // source: Node::path
  int64_t calls = 0;
  int64_t time = 0;          // ns on the calling thread, waits for other threads included
  OpCost cost;               // of all calls
  double limit_seconds = 0;  // what all calls would take at the machine's limit (cost/estimate.h)

  double seconds() const { return static_cast<double>(time) * 1e-9; }
  double gflops() const { return time > 0 ? cost.flops / static_cast<double>(time) : 0; }
  double gbytes_per_s() const { return time > 0 ? cost.bytes / static_cast<double>(time) : 0; }
  double percent_of_peak() const { return time > 0 ? 100 * limit_seconds / seconds() : 0; }
};

// Time above the limit of all calls of one op, wherever in the model.
struct Loss {
  std::string op;
  std::string source;  // the place that loses most
  double seconds = 0, limit_seconds = 0;

  double lost() const { return seconds - limit_seconds; }
};

struct Count {
  int64_t number = 0;
  int64_t time = 0;  // ns
};

// Of all profiled steps together; times in ns on the calling thread.
struct ProfileReport {
  MachineLimits limits;
  int threads = 1;
  int64_t first_step = 0, last_step = 0, steps = 0;
  int64_t step_time = 0;
  int64_t kernel_time = 0;
  int64_t data_wait = 0;
  int64_t dropped = 0;          // of the profile
  std::vector<OpTotals> ops;    // the longest first
  std::vector<Loss> losses;     // the largest first; ops at their limit are not among them
  Count casts, tiny_ops, gaps;  // gaps: pauses of kGap or more between ops, waits for data not counted
  int64_t longest_gap = 0;
  std::string longest_gap_before;  // the op that followed, and its place; "the end of the step"
  double helpers_idle = 0;  // the part of the kernels' time in which the other threads had nothing to do; 0 on one

  // What is neither kernels nor waiting for data: copying inputs, starting, metrics, callbacks.
  int64_t other_time() const { return step_time - kernel_time - data_wait; }
};

ProfileReport summarize(const Profile& profile, const MachineLimits& limits);

// "op,kernel,calls,total_ms,avg_ms,percent,gflops,gbytes_per_s,percent_of_peak,source", a line for each of report.ops.
// `percent` is of the kernels' time and sums to 100; total_ms are exact to the nanosecond.
std::string op_summary_csv(const ProfileReport& report);

// Lines for a person.
std::vector<std::string> describe(const ProfileReport& report);

}  // namespace ingot
