#include "train/run_profile.h"

#include <algorithm>
#include <array>

#include "base/log.h"
#include "train/data_verdict.h"

namespace ingot {
namespace {

constexpr size_t kDataSpans = 1 << 16;

std::vector<TimelineLane> lanes_of(std::span<const DataSpan> spans) {
  std::vector<TimelineLane> lanes;
  for (const DataStage stage : {DataStage::reading, DataStage::tokenizing, DataStage::packing}) {
    TimelineLane& lane = lanes.emplace_back();
    lane.name = fmt::format("data: {}", name_of(stage));
    for (const DataSpan& span : spans) {
      if (span.stage != stage) continue;
      lane.spans.push_back({std::string(name_of(stage)), span.begin, span.end});
      if (stage == DataStage::packing)
        lane.spans.back().arguments = {{"cpu_ms", static_cast<double>(span.cpu) * 1e-6},
                                       {"waiting_for_a_core_ms", static_cast<double>(span.queued) * 1e-6}};
    }
  }
  return lanes;
}

}  // namespace

RunProfile::RunProfile(const ProfileSection& section, fs::path directory, int64_t done, int64_t last, DType dtype,
                       const ThreadPool& pool)
    : directory_(std::move(directory)), pool_(pool) {
  if (!section.start_step) return;
  const int64_t start = *section.start_step, end = start + section.steps;
  first_ = std::max(start, done + 1);
  end_ = std::min(end, last + 1);
  if (start > last)
    log_warning("profile.start_step {} lies behind the last step, {}: nothing will be profiled", start, last);
  else if (end <= done + 1)
    log_info("profile: the steps {} to {} are done already, nothing is left to profile", start, end - 1);
  else if (first_ != start || end_ != end)
    log_warning("profile: of the steps {} to {} only {} to {} will run", start, end - 1, first_, end_ - 1);
  if (is_wanted()) limits_ = measure_machine(pool, dtype);
}

void RunProfile::reserve(const StepSize& size) {
  if (!is_wanted()) return;
  const auto steps = static_cast<size_t>(end_ - first_);
  const size_t room = kMostBytes / Profile::bytes_an_op(pool_.threads());
  const size_t activities = steps * (size.micro_batches + 5);  // the step, waiting, update, evaluation, checkpoint
  const size_t ops = std::min(room, steps * size.ops);
  profile_ = std::make_unique<Profile>(pool_.threads(), ops, activities);
  data_log_ = std::make_unique<DataLog>(kDataSpans);
  const size_t bytes = ops * Profile::bytes_an_op(pool_.threads()) + kDataSpans * DataLog::bytes_a_span();
  log_info("profile: the steps {} to {} will be recorded, in {:.1f} MB", first_, end_ - 1,
           static_cast<double>(bytes) * 1e-6);
}

void RunProfile::begin_step(int64_t step) {
  if (profile_ == nullptr || step < first_ || step >= end_) return;
  recording_ = true;
  data_log_->listen(true);
  profile_->begin_step(step);
}

void RunProfile::end_step(int64_t step) {
  if (!recording_) return;
  profile_->end_step();
  if (step + 1 >= end_) write();
}

void RunProfile::finish() {
  if (recording_) write();
}

void RunProfile::write() {
  recording_ = false;
  data_log_->listen(false);
  const ProfileReport report = summarize(*profile_, limits_);
  if (report.steps > 0) {
    for (const std::string& line : describe(report)) log_info("{}", line);
    log_info("{}", describe(judge_data(report.step_time, report.data_wait, data_spans())));
    if (const Status written = write_files(report); !written.ok())
      log_warning("the profile could not be written: {}", written.error().message);
    else
      log_info("profile:     {} (for Perfetto or chrome://tracing) and op_summary.csv beside it",
               (directory_ / "timeline.json").string());
  }
  if (const int64_t dropped = report.dropped; dropped > 0)
    log_warning("{} ops and steps of the profile did not fit its {} MB and were dropped; set a smaller profile.steps",
                dropped, kMostBytes >> 20);
  if (data_log_->dropped() > 0)
    log_warning("{} readings of the data worker did not fit the profile and were dropped", data_log_->dropped());
  profile_.reset();  // the data worker may still hold the log
}

Status RunProfile::write_files(const ProfileReport& report) const {
  INGOT_TRY(ingot::create_directories(directory_));
  INGOT_TRY(remove_abandoned_files(directory_));
  INGOT_TRY(write_file_atomic(directory_ / "op_summary.csv", op_summary_csv(report)));
  return write_file_atomic(directory_ / "timeline.json", timeline_json(*profile_, lanes_of(data_spans())));
}

// Those that ended while steps were recorded.
std::vector<DataSpan> RunProfile::data_spans() const {
  int64_t begin = 0, end = 0;
  for (const ActivitySpan& span : profile_->activities()) {
    if (span.activity != Activity::step) continue;
    if (begin == 0) begin = span.begin;
    end = span.end;
  }
  std::vector<DataSpan> spans;
  for (const DataSpan& span : data_log_->spans())
    if (span.end > begin && span.end <= end) spans.push_back(span);
  return spans;
}

}  // namespace ingot
