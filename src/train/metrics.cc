#include "train/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/files.h"

namespace ingot {
namespace {

bool is_number(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error != std::errc::invalid_argument && end == text.data() + text.size();
}

// The step of a row with `columns` numbers of which the first is a whole one.
std::optional<int64_t> step_of_row(std::string_view line, int64_t columns) {
  int64_t step = 0;
  const auto [end, error] = std::from_chars(line.data(), line.data() + std::min(line.find(','), line.size()), step);
  if (error != std::errc() || end != line.data() + std::min(line.find(','), line.size())) return std::nullopt;
  if (std::count(line.begin(), line.end(), ',') + 1 != columns) return std::nullopt;
  while (true) {
    const size_t comma = line.find(',');
    if (!is_number(line.substr(0, comma))) return std::nullopt;
    if (comma == std::string_view::npos) return step;
    line.remove_prefix(comma + 1);
  }
}

struct Kept {
  std::string content;
  int64_t last_step = 0;
};

// The part of an existing file that a run which goes on after `resumed_step` keeps.
Result<Kept> keep_rows(std::string_view content, std::string_view header, int64_t resumed_step, const fs::path& path) {
  Kept kept{std::string(header) + "\n"};
  const int64_t columns = std::count(header.begin(), header.end(), ',') + 1;
  for (int64_t line_number = 1;; ++line_number) {
    const size_t end = content.find('\n');
    if (end == std::string_view::npos) return kept;  // the end, or a line that a crash tore
    const std::string_view line = content.substr(0, end);
    content.remove_prefix(end + 1);
    if (line_number == 1) {
      if (line == header) continue;
      return input_error("{}:1: expected the header '{}', found '{}': move the file away to start a new one",
                         path.string(), header, line.substr(0, 200));
    }
    const auto step = step_of_row(line, columns);
    if (!step)
      return input_error("{}:{}: expected a step and {} numbers, found '{}': repair the line or move the file away",
                         path.string(), line_number, columns - 1, line.substr(0, 200));
    if (*step > resumed_step || *step <= kept.last_step) continue;
    kept.content.append(line).append("\n");
    kept.last_step = *step;
  }
}

}  // namespace

Result<StepCsv> StepCsv::open(const fs::path& path, std::string_view header, int64_t resumed_step) {
  std::string content;
  std::error_code problem;
  if (fs::exists(path, problem)) {
    INGOT_ASSIGN(content, read_file(path));
  }
  INGOT_ASSIGN(const Kept kept, keep_rows(content, header, resumed_step, path));
  if (kept.content != content) INGOT_TRY(write_file_atomic(path, kept.content));
  INGOT_ASSIGN(AppendFile file, AppendFile::open(path));
  return StepCsv(std::move(file), kept.last_step);
}

void StepCsv::append(int64_t step, const std::string& row) {
  if (step <= last_step_) return;
  last_step_ = step;
  file_.append(row + "\n");
}

Result<MetricsWriter> MetricsWriter::open(const fs::path& output_dir, int64_t resumed_step) {
  INGOT_ASSIGN(StepCsv csv, StepCsv::open(output_dir / "metrics.csv", kMetricsHeader, resumed_step));
  return MetricsWriter(std::move(csv));
}

void MetricsWriter::write(const StepMetrics& row) {
  csv_.append(row.step, fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{}", row.step, row.tokens,
                                    row.counted_tokens, row.loss, row.learning_rate, row.grad_norm,
                                    row.tokens_per_second, row.step_ms, row.data_wait_ms, row.exposed_comm_ms, row.mfu,
                                    row.peak_memory_mb, row.loss_scale, row.skipped));
}

Result<EvaluationWriter> EvaluationWriter::open(const fs::path& output_dir, int64_t resumed_step) {
  INGOT_ASSIGN(StepCsv csv, StepCsv::open(output_dir / "evaluation.csv", kEvaluationHeader, resumed_step));
  return EvaluationWriter(std::move(csv));
}

void EvaluationWriter::write(const EvaluationMetrics& row) {
  csv_.append(row.step, fmt::format("{},{},{},{}", row.step, row.loss, row.perplexity, row.bits_per_byte));
}

}  // namespace ingot
