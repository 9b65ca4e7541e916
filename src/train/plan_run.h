// What a run will take, from its configuration, before anything of it exists: neither data nor tokenizer nor weights
// have to be there, and none of the run's memory is allocated.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plan/run_plan.h"
#include "text/tokenizer.h"
#include "train/config.h"

namespace ingot {

// The model of a configuration as far as it can be known without building anything.
struct PlannedModel {
  Model model;
  std::optional<Tokenizer> tokenizer;    // where it is there already
  std::vector<std::string> assumptions;  // about the vocabulary
  std::vector<std::string> warnings;
};
// Errors as the run's own start has them, but what is only missing yet is assumed.
Result<PlannedModel> plan_model(const RunConfig& config);

// The plan; a run that does not fit the machine has a plan too, with its problems in it. `limits` are of the same
// threads as `pool`; `available_memory`, in bytes, is what the run may take. Errors: what the run's start refuses,
// memory and disk aside.
Result<RunPlan> plan_run(const RunConfig& config, const MachineLimits& limits, int64_t available_memory,
                         const ThreadPool& pool);

}  // namespace ingot
