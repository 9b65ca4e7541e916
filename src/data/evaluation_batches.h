// EvaluationBatches: the sequences of some sources in their own order, once, cut into batches of one shape a length.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.h"
#include "data/batch.h"

namespace ingot {

struct EvaluationOptions {
  int64_t sequence_length = 1024;
  int64_t batch_size = 8;   // rows
  int64_t max_batches = 0;  // over all ranks; 0: all
  int rank = 0;             // data-parallel; the ranks take batches in turn
  int ranks = 1;
};

class EvaluationBatches {
 public:
  static Result<EvaluationBatches> create(std::vector<std::shared_ptr<const SequenceSource>> sources,
                                          const EvaluationOptions& options);

  // The same on every rank, so that they meet in collectives: where batches run out, a rank gets one without counted
  // targets.
  int64_t rounds() const { return rounds_; }
  int64_t batches() const { return batches_; }  // over all ranks
  // The batch of a round, valid until the next call. The last may have rows of padding alone. One thread at a time.
  Result<const Batch*> batch(int64_t round);

 private:
  EvaluationBatches() = default;
  std::vector<std::shared_ptr<const SequenceSource>> sources_;
  std::vector<int64_t> ends_;  // sequences of a source and of those before it
  EvaluationOptions options_;
  int64_t batches_ = 0, rounds_ = 0;
  Batch batch_;
};

}  // namespace ingot
