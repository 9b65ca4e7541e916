// Ablation: what each optimisation of the compiler brings, by switching it on and off alone.
#pragma once

#include <string>
#include <vector>

#include "base/parallel.h"
#include "base/result.h"
#include "models/model.h"
#include "train/programs.h"

namespace ingot::cli {

struct AblateOptions {
  int64_t rounds = 3;  // each program runs once a round, one after the other
};

// One compiled form of the micro-step (forward, loss, backward), beside the form that it is compared with.
struct AblationRow {
  std::string name;     // "without fuse_attention"
  std::string against;  // "as configured" or "nothing fused"
  double ms = 0;        // the median of the rounds
  double tokens_per_second = 0;
  double time_ratio = 1;                                // the median of the rounds' ratios to the form compared with
  int64_t memory_bytes = 0;                             // the workspace that it plans
  double loss_difference = 0, gradient_difference = 0;  // the largest; gradients relative to the tensor's largest entry
  bool same_program = false;                            // what is switched finds nothing to do in this model
  // False where, off, it is no slower than on (within kNoise) and takes no more memory.
  bool pays = true;
};

inline constexpr double kNoise = 0.01;

// The form that `settings` asks for; each pass that may be left out left out alone; each fusion alone over nothing
// fused; and each recompute policy. Random tokens and initial weights, the same for all.
Result<std::vector<AblationRow>> ablate(const Model& model, const ProgramSettings& settings,
                                        const AblateOptions& options, const ThreadPool& pool);

// A table, or one JSON object {rows: [...]}.
void print_ablation(const std::vector<AblationRow>& rows, bool json);

}  // namespace ingot::cli
