#include "train/evaluation.h"

#include <cmath>
#include <limits>
#include <numbers>

namespace ingot {

Result<EvaluationResult> evaluate(BatchLoss loss_of, EvaluationBatches& batches) {
  EvaluationResult result;
  double nats = 0;
  int64_t bytes = 0;
  bool bytes_known = true;
  for (int64_t round = 0; round < batches.rounds(); ++round) {
    INGOT_ASSIGN(const Batch* batch, batches.batch(round));
    if (batch->counted == 0) continue;
    INGOT_ASSIGN(const double loss, loss_of(*batch, 1.0f / static_cast<float>(batch->counted)));
    nats += loss * static_cast<double>(batch->counted);
    result.tokens += batch->counted;
    bytes += batch->text_bytes;
    bytes_known = bytes_known && batch->text_bytes > 0;
  }
  if (result.tokens == 0) return input_error("the validation data hold no token that counts");
  result.loss = nats / static_cast<double>(result.tokens);
  result.perplexity = std::exp(result.loss);
  result.bits_per_byte =
      bytes_known ? nats / std::numbers::ln2 / static_cast<double>(bytes) : std::numeric_limits<double>::quiet_NaN();
  return result;
}

}  // namespace ingot
