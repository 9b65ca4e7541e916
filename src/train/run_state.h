// The counters of a run, beside its tensors: what a checkpoint's state.json holds.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "data/cursor.h"

namespace ingot {

struct RunState {
  int64_t step = 0;     // optimizer steps made, skipped ones included
  int64_t updates = 0;  // of them those that changed the parameters: the optimizer's t
  int64_t tokens = 0;   // trained on so far
  int64_t skipped = 0;
  int64_t consecutive_skips = 0;
  double loss_scale = 1;               // of the next step
  std::optional<int64_t> clean_steps;  // at this loss scale, in a row; absent where the run does not scale its loss
  Cursor cursor;                       // behind the last step
  int64_t micro_batch_size = 0;        // kept when the configuration leaves it open: another one rounds otherwise
  int64_t total_steps = 0;             // of the schedule: a resumed schedule keeps its length

  std::string to_json() const;
  // ErrorKind::input that names `source_name` and the key.
  static Result<RunState> parse(std::string_view json, std::string_view source_name);
  bool operator==(const RunState&) const = default;
};

}  // namespace ingot
