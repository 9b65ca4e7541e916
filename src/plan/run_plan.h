// RunPlan: what a training run will take, as plain data, and as text for people. train/plan_run.h makes it from a
// configuration.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cost/machine.h"
#include "models/model.h"
#include "plan/memory_estimate.h"

namespace ingot {

// How a run is cut over ranks.
struct Layout {
  int64_t data = 1, tensor = 1, pipeline = 1, context = 1;
  int64_t zero_stage = 0;
  int64_t ranks() const { return data * tensor * pipeline * context; }
};

struct RatePoint {
  std::string when;  // "first step"
  int64_t step = 0;
  double learning_rate = 0;
};

struct DiskEstimate {
  int64_t checkpoint = 0;  // one
  int64_t keep = 0;        // of them stay; while one is written there is one more
  int64_t needed = 0;
  int64_t room = 0;   // free, with what this run's checkpoints hold already
  int64_t model = 0;  // the final model
};

// A row of the table of precisions (passes/lower_precision.h).
struct PrecisionRow {
  std::string kind;      // of ops, as training.fp32_ops names it
  std::string what;      // it computes in
  std::string operands;  // what it reads is stored in: "bf16"
};

struct RunPlan {
  std::string model;  // "llama, 10 layers of width 256"
  int64_t parameters = 0, trained_parameters = 0;
  std::vector<std::pair<std::string, int64_t>> components;  // parameters by component

  Layout layout;
  int threads = 1;
  int64_t micro_batch = 1, accumulation = 1, sequence_length = 0;
  int64_t sequences_per_step() const { return layout.data * micro_batch * accumulation; }
  int64_t tokens_per_step() const { return sequences_per_step() * sequence_length; }

  std::optional<int64_t> total_steps, steps_per_epoch;
  std::vector<RatePoint> rates;

  std::string precision = "fp32";
  std::vector<PrecisionRow> precisions;  // empty in fp32

  MemoryEstimate memory;
  std::string recomputed;        // "selective in layers 0-11"; empty: nothing
  double recompute_seconds = 0;  // of step_seconds
  int64_t available_memory = 0;
  DiskEstimate disk;

  MachineLimits machine;
  double model_flops = 0;    // of a step, by the model's formula (6·N + 12·layers·hidden·T a token)
  double program_flops = 0;  // of a step, of the compiled programs
  double step_seconds = 0;
  double tokens_per_second() const { return static_cast<double>(tokens_per_step()) / step_seconds; }
  // Of the measured peak, by the model's FLOPs.
  double mfu() const { return model_flops / step_seconds / (machine.peak_gflops * 1e9); }

  std::vector<std::string> problems;     // why it does not fit; empty: it fits
  std::vector<std::string> remedies;     // what would make it fit
  std::vector<std::string> assumptions;  // what is not known yet and what was taken for it
  std::vector<std::string> warnings;
  bool fits() const { return problems.empty(); }
};

// Parameters by component, in the order in which components first appear.
std::vector<std::pair<std::string, int64_t>> parameters_by_component(const Model& model);

// Several lines, each ended.
std::string describe(const RunPlan& plan);

}  // namespace ingot
