// The loss of a model on validation sequences.
#pragma once

#include <cstdint>

#include "base/parallel.h"
#include "data/evaluation_batches.h"

namespace ingot {

struct EvaluationResult {
  double loss = 0;  // mean over the counted tokens, in nats
  double perplexity = 0;
  double bits_per_byte = 0;  // NaN where the bytes of text are not known
  int64_t tokens = 0;        // counted
};

// The loss part of a batch: the sum over its counted targets times loss_scale.
using BatchLoss = FunctionRef<Result<double>(const Batch& batch, float loss_scale)>;

// Error (input) where nothing counts.
Result<EvaluationResult> evaluate(BatchLoss loss_of, EvaluationBatches& batches);

}  // namespace ingot
