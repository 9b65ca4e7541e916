// What each layer recomputes, from a configuration's section `recompute`.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "autodiff/recompute.h"
#include "base/result.h"
#include "train/config.h"

namespace ingot {

// The layers that may be recomputed, ascending, each once. Error (usage): one that the model does not have.
Result<std::vector<int64_t>> recomputed_layers(const RecomputeSection& section, int64_t layer_count);

// The levels of a policy that says them by itself (not budget).
std::vector<RecomputeLevel> fixed_levels(RecomputePolicy policy, const std::vector<int64_t>& layers,
                                         int64_t layer_count);

// Policy budget goes through these by the time that they cost: step 0 recomputes nothing, with each step one layer more
// is recomputed selectively, then one layer more in full; the last, 2 · layers.size(), recomputes all in full. The
// first layers go first: theirs is the memory that is held when all of the forward pass has run, and when they are
// recomputed the others have gone.
std::vector<RecomputeLevel> budget_levels(int64_t step, const std::vector<int64_t>& layers, int64_t layer_count);

// The least step whose run takes at most `budget` bytes (by bisection: memory falls from step to step). `needed` plans
// the run at a step; the last that it was asked for and that fits is the answer. Error (usage): not even the last step
// does.
Result<int64_t> least_step_within(int64_t budget, int64_t layers,
                                  const std::function<Result<int64_t>(int64_t step)>& needed);

// "full in layers 0-3, selective in 4-11", "nothing".
std::string describe_levels(const std::vector<RecomputeLevel>& levels);

}  // namespace ingot
