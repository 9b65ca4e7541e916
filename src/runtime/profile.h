// Profile: what every op of some steps took, on every thread, and what lay between them. Its buffers are made once;
// recording allocates nothing.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/program.h"

namespace ingot {

// What a stretch of the calling thread's time was for. They nest: step > the next three > ops. The last two lie between
// steps.
enum class Activity : uint8_t { step, wait_for_data, micro_step, update, evaluation, checkpoint };
std::string_view name_of(Activity activity);

// All times are in steady_ns().
struct ActivitySpan {
  Activity activity = Activity::step;
  int64_t number = 0;  // of the step, or of the micro-batch in it from 1; 0 for the others
  int64_t begin = 0, end = 0;
};

// A node of a program that ran: on the calling thread from its begin to its end.
struct OpSpan {
  const Program* program = nullptr;
  size_t step = 0;  // of the program's schedule
  int64_t begin = 0, end = 0;

  const Node& node() const { return program->node_at(step); }
  std::string kernel() const;  // "matmul.f32.AVX3": family, dtype of what the op makes, instruction set
};

// "linear transformer.h.0.mlp": the op and its place in the model.
std::string place_of(const Node& node);

// What one thread did of it; begin 0: it had no part.
struct OpShare {
  int64_t begin = 0, end = 0;
  int64_t busy = 0;  // less than end - begin where it waited for other threads between parts of the op
};

// For one thread, the one that runs the programs. The programs must outlive the profile.
class Profile {
 public:
  // Room for so many ops and activities, on a pool of `threads`.
  Profile(int threads, size_t ops, size_t activities);
  Profile(const Profile&) = delete;
  Profile& operator=(const Profile&) = delete;

  static size_t bytes_an_op(int threads) { return sizeof(OpSpan) + static_cast<size_t>(threads) * sizeof(OpShare); }

  // A step that does not fit is left out as a whole, and so are all behind it.
  void begin_step(int64_t number, int64_t now = steady_ns());
  void end_step(int64_t now = steady_ns());
  void add(Activity activity, int64_t number, int64_t begin, int64_t end);
  // Notes an op; for observers of one's own, which need thread_times().
  void add(const NodeEvent& event);
  std::span<ThreadTime> thread_times() { return thread_times_; }
  // Notes every op that has a kernel.
  const NodeObserver& observer() const { return observer_; }

  // Of whole steps, in the order of time.
  int threads() const { return threads_; }
  size_t op_count() const { return whole_ops_; }
  const OpSpan& op(size_t i) const { return ops_[i]; }
  const OpShare& share(size_t op, int thread) const {
    return shares_[op * static_cast<size_t>(threads_) + static_cast<size_t>(thread)];
  }
  std::span<const ActivitySpan> activities() const { return {activities_.data(), whole_activities_}; }  // by their end
  int64_t dropped() const { return dropped_; }  // ops and activities that did not fit

 private:
  int threads_;
  std::vector<OpSpan> ops_;
  std::vector<OpShare> shares_;  // [ops, threads]
  std::vector<ActivitySpan> activities_;
  std::vector<ThreadTime> thread_times_;
  NodeObserver observer_;
  size_t op_count_ = 0, activity_count_ = 0;
  size_t whole_ops_ = 0, whole_activities_ = 0;  // without the step that goes on
  bool in_step_ = false;
  int64_t step_ = 0, step_begin_ = 0;
  int64_t dropped_ = 0;
};

// An activity from its making to its end; nothing where there is no profile.
class ActivityScope {
 public:
  ActivityScope(Profile* profile, Activity activity, int64_t number = 0)
      : profile_(profile), activity_(activity), number_(number), begin_(profile != nullptr ? steady_ns() : 0) {}
  ~ActivityScope() {
    if (profile_ != nullptr) profile_->add(activity_, number_, begin_, steady_ns());
  }
  ActivityScope(const ActivityScope&) = delete;
  ActivityScope& operator=(const ActivityScope&) = delete;

 private:
  Profile* profile_;
  Activity activity_;
  int64_t number_, begin_;
};

}  // namespace ingot
