#include "train/data_verdict.h"

#include <fmt/format.h>

namespace ingot {

DataVerdict judge_data(int64_t step_time, int64_t data_wait, std::span<const DataSpan> spans) {
  DataVerdict verdict;
  if (step_time > 0) verdict.waited_part = static_cast<double>(data_wait) / static_cast<double>(step_time);
  for (const DataSpan& span : spans) {
    const int64_t time = span.end - span.begin;
    if (span.stage == DataStage::reading) verdict.reading += time;
    if (span.stage == DataStage::tokenizing) verdict.tokenizing += time;
    if (span.stage != DataStage::packing) continue;
    ++verdict.batches;
    verdict.packing += time;
    verdict.cpu += span.cpu;
    verdict.queued += span.queued;
  }
  if (verdict.waited_part <= kWaitsTooLong) return verdict;
  if (verdict.batches == 0)
    verdict.limit = DataLimit::unknown;
  else
    verdict.limit = verdict.blocked() * 2 > verdict.packing ? DataLimit::disk : DataLimit::cpu;
  return verdict;
}

std::string describe(const DataVerdict& v) {
  const double waited = 100 * v.waited_part;
  if (v.limit == DataLimit::unknown)
    return fmt::format("the data pipeline is the bottleneck: steps wait for it {:.1f}% of their time", waited);
  const auto each = [&](int64_t time) {
    return static_cast<double>(time) * 1e-6 / static_cast<double>(std::max<int64_t>(v.batches, 1));
  };
  const std::string worker = fmt::format(
      "its worker took {:.3f} ms for the batches of a step ({:.3f} ms reading, {:.3f} ms tokenizing): {:.3f} ms on a "
      "core, {:.3f} ms waiting for one, {:.3f} ms waiting for the disk",
      each(v.packing), each(v.reading), each(v.tokenizing), each(v.cpu), each(v.queued), each(v.blocked()));
  if (v.limit == DataLimit::none) {
    const std::string verdict =
        fmt::format("the data pipeline keeps up: steps wait for it {:.2f}% of their time", waited);
    return v.batches > 0 ? verdict + "; " + worker : verdict;
  }
  return fmt::format("the data pipeline is the bottleneck, for {}: steps wait for it {:.1f}% of their time; {}",
                     v.limit == DataLimit::cpu ? "CPU" : "disk", waited, worker);
}

}  // namespace ingot
