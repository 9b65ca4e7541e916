// Whether a run waits for its data, and for what its data worker waits.
#pragma once

#include <span>
#include <string>

#include "data/data_log.h"

namespace ingot {

enum class DataLimit { none, cpu, disk, unknown };  // unknown: steps waited, but no batch was finished meanwhile

struct DataVerdict {
  DataLimit limit = DataLimit::none;
  double waited_part = 0;  // of the steps' time
  int64_t batches = 0;     // steps' batches that the worker finished
  // Of the worker over all of them, in ns. packing is the whole.
  int64_t packing = 0, reading = 0, tokenizing = 0, cpu = 0, queued = 0;

  // Neither computing nor waiting for a core: it waits for the disk (or whatever else a source waits for).
  int64_t blocked() const { return packing > cpu + queued ? packing - cpu - queued : 0; }
};

// The pipeline is the bottleneck where steps wait for more than this part of their time.
inline constexpr double kWaitsTooLong = 0.05;

// Of steps that took `step_time` ns together and waited `data_wait` of it, and what the worker noted meanwhile.
DataVerdict judge_data(int64_t step_time, int64_t data_wait, std::span<const DataSpan> spans);

// One sentence.
std::string describe(const DataVerdict& verdict);

}  // namespace ingot
