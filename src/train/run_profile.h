// The section `profile` of a run: the steps that it names are recorded, and behind the last of them the timeline, the
// summary of ops and a few lines in the log are written. What goes wrong there is a warning: training goes on.
#pragma once

#include <memory>
#include <vector>

#include "base/files.h"
#include "data/data_log.h"
#include "runtime/profile_report.h"
#include "runtime/timeline.h"
#include "train/config.h"

namespace ingot {

// What there must be room for.
struct StepSize {
  size_t ops = 0;
  size_t micro_batches = 1;
};

class RunProfile {
 public:
  // For a run that goes on behind step `done` and ends with step `last`. Says in the log where the section asks for
  // steps that will not run. Where there is something to record, measures the machine (products of `dtype`), which
  // takes 0.6 s and for a moment 128 MB a thread: before the run takes its own memory.
  RunProfile(const ProfileSection& section, fs::path directory, int64_t done, int64_t last, DType dtype,
             const ThreadPool& pool);

  // Makes the buffers, if there is something to record.
  void reserve(const StepSize& size);
  DataLog* data_log() { return data_log_.get(); }  // null: nothing will be recorded
  // Null: this step is not recorded.
  Profile* current() { return recording_ ? profile_.get() : nullptr; }

  void begin_step(int64_t step);
  // Writes the files behind the last step to be recorded.
  void end_step(int64_t step);
  // Writes what there is, where the run ends before the last step to be recorded has.
  void finish();

  static constexpr size_t kMostBytes = size_t{64} << 20;  // of the buffers for ops

 private:
  bool is_wanted() const { return first_ <= end_ - 1; }
  void write();
  Status write_files(const ProfileReport& report) const;
  std::vector<DataSpan> data_spans() const;

  fs::path directory_;
  const ThreadPool& pool_;
  int64_t first_ = 1, end_ = 1;  // records the steps [first_, end_)
  MachineLimits limits_;
  std::unique_ptr<Profile> profile_;
  std::unique_ptr<DataLog> data_log_;
  bool recording_ = false;
};

}  // namespace ingot
