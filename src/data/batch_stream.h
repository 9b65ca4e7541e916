// BatchStream: the micro-batches of one data-parallel rank, optimizer step by optimizer step, made ahead on a thread of
// its own.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "data/batch.h"
#include "data/cursor.h"
#include "data/sample_order.h"
#include "data/sequences.h"

namespace ingot {

// One entry of a mixture.
struct MixturePart {
  std::shared_ptr<const SequenceSource> sequences;
  std::optional<double> weight;  // where any part has one, the others have 1; see SampleOrder
};

struct StreamOptions {
  int64_t sequence_length = 1024;  // no sequence is longer
  int64_t global_batch_size = 8;   // sequences of a step, over all ranks; a multiple of micro_batch_size * ranks
  int64_t micro_batch_size = 8;
  int rank = 0;  // data-parallel
  int ranks = 1;
  bool shuffle = true;
  uint64_t seed = 42;
  int prefetch_batches = 4;  // steps made ahead; 0: no thread, next() does the work
  DataLog* log = nullptr;    // told of reading and packing; outlives the stream
};

// Everything that this rank needs for one step, so that the loss divisor is known before the first forward pass.
struct StepBatches {
  std::vector<Batch> micro;  // [global_batch_size / (micro_batch_size * ranks)]
  int64_t tokens = 0;        // of this rank, as in Batch
  int64_t counted = 0;
  int64_t text_bytes = 0;
  Cursor cursor;  // behind this step
};

// Step s takes the draws [s, s + 1) * global_batch_size of the order, whatever the ranks: row g of a step belongs to
// micro-batch g / micro_batch_size, and these go to the ranks in turn. Where lengths vary, the rows of a step are
// sorted by length first, so that a micro-batch holds rows of like length.
//
// next() and cursor() are for one thread. Ending the object stops its thread.
class BatchStream {
 public:
  // Continues at `start`. ErrorKind::usage for sizes that do not divide, ErrorKind::input for a cursor of other data.
  static Result<std::unique_ptr<BatchStream>> create(std::vector<MixturePart> parts, const StreamOptions& options,
                                                     const Cursor& start = {});
  ~BatchStream();
  BatchStream(const BatchStream&) = delete;
  BatchStream& operator=(const BatchStream&) = delete;

  // The next step's batches, valid until the next call. In the steady state nothing is allocated. The error of a source
  // comes when its step is asked for, and again at each further call.
  Result<const StepBatches*> next();
  // Behind the last step that next() gave out, however many were made ahead.
  const Cursor& cursor() const;
  int64_t sequences_per_epoch() const;
  int64_t steps_per_epoch() const;  // whole steps in the first epoch; a step may cross into the next epoch

 private:
  class Maker;
  class Prefetcher;
  BatchStream(std::unique_ptr<Maker> maker, int prefetch);

  std::unique_ptr<Maker> maker_;
  std::unique_ptr<Prefetcher> prefetcher_;  // none: next() makes `own_`
  StepBatches own_;
  Cursor cursor_;
};

}  // namespace ingot
