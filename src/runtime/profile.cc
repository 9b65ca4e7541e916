#include "runtime/profile.h"

#include "kernels/instruction_set.h"

namespace ingot {

std::string_view name_of(Activity activity) {
  switch (activity) {
    case Activity::step:
      return "step";
    case Activity::wait_for_data:
      return "wait for data";
    case Activity::micro_step:
      return "micro-step";
    case Activity::update:
      return "update";
    case Activity::evaluation:
      return "evaluation";
    case Activity::checkpoint:
      return "checkpoint";
  }
  INGOT_CHECK(false, "activity {}", static_cast<int>(activity));
}

std::string OpSpan::kernel() const {
  const Type& type = program->graph().type(node().outputs[0]);
  return fmt::format("{}.{}.{}", program->kernel_at(step)->family, ingot::name_of(type.dtype),
                     kernels::instruction_set());
}

std::string place_of(const Node& node) {
  return node.path.empty() ? std::string(node.op->name) : fmt::format("{} {}", node.op->name, node.path);
}

Profile::Profile(int threads, size_t ops, size_t activities)
    : threads_(threads),
      ops_(ops),
      shares_(ops * static_cast<size_t>(threads)),
      activities_(activities),
      thread_times_(static_cast<size_t>(threads)),
      observer_{[this](const NodeEvent& event) -> Status {
                  add(event);
                  return {};
                },
                thread_times_} {}

void Profile::begin_step(int64_t number, int64_t now) {
  INGOT_CHECK(!in_step_, "step {} begins in step {}", number, step_);
  in_step_ = true;
  step_ = number;
  step_begin_ = now;
}

void Profile::end_step(int64_t now) {
  INGOT_CHECK(in_step_, "no step has begun");
  add(Activity::step, step_, step_begin_, now);
  in_step_ = false;
  if (dropped_ > 0) {  // the parts of it that did fit say nothing about it
    dropped_ += static_cast<int64_t>(op_count_ - whole_ops_ + activity_count_ - whole_activities_);
    op_count_ = whole_ops_;
    activity_count_ = whole_activities_;
    return;
  }
  whole_ops_ = op_count_;
  whole_activities_ = activity_count_;
}

void Profile::add(Activity activity, int64_t number, int64_t begin, int64_t end) {
  if (dropped_ > 0 || activity_count_ == activities_.size()) {
    ++dropped_;
    return;
  }
  activities_[activity_count_++] = {activity, number, begin, end};
  if (!in_step_) whole_activities_ = activity_count_;
}

void Profile::add(const NodeEvent& event) {
  if (event.program.kernel_at(event.step) == nullptr) return;
  if (dropped_ > 0 || op_count_ == ops_.size()) {
    ++dropped_;
    return;
  }
  ops_[op_count_] = {&event.program, event.step, event.begin, event.end};
  OpShare* shares = &shares_[op_count_ * static_cast<size_t>(threads_)];
  for (size_t i = 0; i < thread_times_.size(); ++i)
    shares[i] = {thread_times_[i].begin, thread_times_[i].end, thread_times_[i].busy};
  ++op_count_;
}

}  // namespace ingot
