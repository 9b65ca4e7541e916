// The loss of a model on validation sequences.
#pragma once

#include <memory>
#include <vector>

#include "data/evaluation_batches.h"
#include "train/programs.h"

namespace ingot {

struct EvaluationResult {
  double loss = 0;  // mean over the counted tokens, in nats
  double perplexity = 0;
  double bits_per_byte = 0;  // NaN where the bytes of text are not known
  int64_t tokens = 0;        // counted
};

// Error (input) where nothing counts.
Result<EvaluationResult> evaluate(TrainingPrograms& programs, EvaluationBatches& batches);

}  // namespace ingot
