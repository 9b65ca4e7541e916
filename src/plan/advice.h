// Warnings about choices that a run may take but that are rarely meant: rates, warm-up and batch sizes far from what
// models of this size are trained with.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ingot {

struct TrainingChoices {
  int64_t parameters = 0;
  double learning_rate = 0;  // the peak
  int64_t tokens_per_step = 0;
  int64_t warmup_steps = 0;
  std::optional<int64_t> total_steps;  // none: not known yet
  bool pretrained = false;             // training goes on from trained weights
};

// The peak rate that GPT-3's models of this size were trained with (Brown et al., "Language Models are Few-Shot
// Learners", 2020, table 2.1), as the power law through them: 6e-4 at 125M parameters, 1e-4 at 13B; at most 3e-3.
double usual_learning_rate(int64_t parameters);
// The tokens of a step there: 0.5M at 125M parameters, 2M at 13B.
double usual_tokens_per_step(int64_t parameters);

// One sentence each.
std::vector<std::string> advice(const TrainingChoices& choices);

}  // namespace ingot
