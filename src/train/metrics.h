// metrics.csv and evaluation.csv of a run: one row a logged step, each written whole and at once. After a resume they
// go on with no step twice and none missing.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.h"
#include "train/metrics_append.h"

namespace ingot {

// A row of metrics.csv; the columns are the members, in this order. What is not known is NaN.
struct StepMetrics {
  int64_t step = 0;            // optimizer steps, 1 at the first
  int64_t tokens = 0;          // trained on so far, this step included
  int64_t counted_tokens = 0;  // labels that counted in this step's loss
  double loss = 0;
  double learning_rate = 0;
  double grad_norm = 0;  // before clipping
  double tokens_per_second = 0;
  double step_ms = 0;
  double data_wait_ms = 0;
  double exposed_comm_ms = 0;
  double mfu = 0;
  double peak_memory_mb = 0;
  double loss_scale = 1;
  int64_t skipped = 0;  // steps of the run whose update was skipped so far, this one included
};

struct EvaluationMetrics {
  int64_t step = 0;
  double loss = 0;
  double perplexity = 0;
  double bits_per_byte = 0;
};

inline constexpr std::string_view kMetricsHeader =
    "step,tokens,counted_tokens,loss,learning_rate,grad_norm,tokens_per_second,step_ms,data_wait_ms,exposed_comm_ms,"
    "mfu,"
    "peak_memory_mb,loss_scale,skipped";
inline constexpr std::string_view kEvaluationHeader = "step,loss,perplexity,bits_per_byte";

// A CSV file with a row a step, steps strictly rising. Not thread-safe. A row that cannot be written (a full disk) is
// kept and tried again with the next one; see AppendFile.
class StepCsv {
 public:
  // Opens or makes the file. Rows after `resumed_step` are dropped (0: a new run, all are), as is a last line without
  // its end of line, which a crash left; the file is rewritten only as a whole. Errors: input, where the file has
  // another header or a line that is no row (says which); failed, where it cannot be written.
  static Result<StepCsv> open(const std::filesystem::path& path, std::string_view header, int64_t resumed_step);

  // A row whose step is not after the last one is ignored, so "and at the last step" needs no care of the caller.
  void append(int64_t step, const std::string& row);
  void sync() { file_.sync(); }
  int64_t last_step() const { return last_step_; }  // of the last row, 0 without any
  size_t unwritten_bytes() const { return file_.unwritten_bytes(); }

 private:
  StepCsv(AppendFile file, int64_t last_step) : file_(std::move(file)), last_step_(last_step) {}

  AppendFile file_;
  int64_t last_step_;
};

class MetricsWriter {
 public:
  // output_dir must exist. resumed_step: the step of the checkpoint that the run goes on from, 0 for a new run.
  static Result<MetricsWriter> open(const std::filesystem::path& output_dir, int64_t resumed_step);
  void write(const StepMetrics& row);
  void sync() { csv_.sync(); }
  int64_t last_step() const { return csv_.last_step(); }

 private:
  explicit MetricsWriter(StepCsv csv) : csv_(std::move(csv)) {}
  StepCsv csv_;
};

class EvaluationWriter {
 public:
  static Result<EvaluationWriter> open(const std::filesystem::path& output_dir, int64_t resumed_step);
  void write(const EvaluationMetrics& row);
  void sync() { csv_.sync(); }
  int64_t last_step() const { return csv_.last_step(); }

 private:
  explicit EvaluationWriter(StepCsv csv) : csv_(std::move(csv)) {}
  StepCsv csv_;
};

}  // namespace ingot
