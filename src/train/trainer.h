// Trainer: a run from its configuration to its final model. It resumes by itself, saves, evaluates, watches its own
// figures, and stops in order when asked to.
#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "train/config.h"
#include "train/programs.h"
#include "train/run_state.h"
#include "train/setup.h"

namespace ingot {

// What a callback sees of a step that has just ended. Valid during the call.
struct StepView {
  int64_t step = 0;
  int64_t total_steps = 0;
  int64_t tokens = 0;  // of the run so far
  double loss = 0, learning_rate = 0, grad_norm = 0;
  bool skipped = false;
  double loss_scale = 1;  // the gradients are so many times the true ones; 1 without loss scaling
  // arena().variable("NAME") and variable("grad.NAME") are parameters and gradients, to be read: what is written there
  // does not reach the copies that products read in 16 bits.
  const TrainingPrograms& programs;

  ConstTensorView parameter(const std::string& name) const { return programs.arena().variable(name); }
  ConstTensorView gradient(const std::string& name) const { return programs.arena().variable(gradient_name(name)); }
};

// An error ends the run with that error, after the last complete checkpoint.
using StepCallback = std::function<Status(const StepView&)>;

struct TrainerHooks {
  std::vector<StepCallback> on_step_end;
  // In the place of the sections `data` and `tokenizer`: a program's own sequences, mixed by weight.
  std::vector<MixturePart> sources;
  // Dynamic loss scaling as training.loss_scale says, whatever the precision; fp16 always has it.
  bool scale_loss = false;
};

struct TrainingResult {
  RunState state;
  bool finished = false;   // false: stopped early on request, saved, can be resumed
  std::string stopped_by;  // the signal's name
  double last_loss = 0;
  // Of the last evaluation; NaN without one.
  double validation_loss = std::numeric_limits<double>::quiet_NaN();
  double perplexity = std::numeric_limits<double>::quiet_NaN(),
         bits_per_byte = std::numeric_limits<double>::quiet_NaN();
  double train_seconds = 0;
};

// Runs the whole job. Takes SIGTERM, SIGINT and SIGUSR1 while it runs. Not reentrant: one run at a time in a process.
Result<TrainingResult> train(const RunConfig& config, const TrainerHooks& hooks = {});

// The rows of a micro-batch: the configured ones, or the largest divisor of the global batch with which the plan fits
// the memory (usage error where not even one row does). `available`, in bytes: what the machine has now, where not
// given.
Result<int64_t> choose_micro_batch(const RunConfig& config, const Model& model, int threads,
                                   std::optional<int64_t> available = {});

// The program settings that a configuration stands for.
MixedPrecision mixed_precision(const TrainingSection& training);
ProgramSettings program_settings(const RunConfig& config, int64_t micro_batch);

}  // namespace ingot
