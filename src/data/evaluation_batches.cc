#include "data/evaluation_batches.h"

#include <algorithm>

#include "base/check.h"

namespace ingot {

Result<EvaluationBatches> EvaluationBatches::create(std::vector<std::shared_ptr<const SequenceSource>> sources,
                                                    const EvaluationOptions& options) {
  if (options.batch_size < 1 || options.max_batches < 0)
    return usage_error("evaluation with batches of {} rows, at most {}; expected at least 1 row and no negative number",
                       options.batch_size, options.max_batches);
  INGOT_CHECK(options.ranks >= 1 && options.rank >= 0 && options.rank < options.ranks, "rank {} of {}", options.rank,
              options.ranks);
  EvaluationBatches result;
  result.options_ = options;
  int64_t sequences = 0;
  for (const auto& source : sources) result.ends_.push_back(sequences += source->count());
  if (sequences == 0) return input_error("the validation data holds not one sequence");
  result.sources_ = std::move(sources);
  result.batches_ = (sequences + options.batch_size - 1) / options.batch_size;
  if (options.max_batches > 0) result.batches_ = std::min(result.batches_, options.max_batches);
  result.rounds_ = (result.batches_ + options.ranks - 1) / options.ranks;
  result.batch_.resize(options.batch_size, options.sequence_length);
  return result;
}

Result<const Batch*> EvaluationBatches::batch(int64_t round) {
  INGOT_CHECK(round >= 0 && round < rounds_, "round {} of {}", round, rounds_);
  struct Row {
    const SequenceSource* source;
    int64_t index;
  };
  const int64_t number = round * options_.ranks + options_.rank, first = number * options_.batch_size;
  const int64_t end = number < batches_ ? std::min(ends_.back(), first + options_.batch_size) : first;
  const auto row_of = [&](int64_t sequence) {
    const auto source = std::upper_bound(ends_.begin(), ends_.end(), sequence) - ends_.begin();
    return Row{sources_[static_cast<size_t>(source)].get(),
               sequence - (source == 0 ? 0 : ends_[static_cast<size_t>(source) - 1])};
  };
  int64_t longest = 1;
  for (int64_t sequence = first; sequence < end; ++sequence) {
    const Row row = row_of(sequence);
    longest = std::max(longest, row.source->length(row.index));
  }
  batch_.resize(options_.batch_size, padded_length(longest, options_.sequence_length));
  for (int64_t i = 0; i < options_.batch_size; ++i) {
    if (first + i >= end) {
      fill_empty_row(sources_[0]->padding_token(), i, batch_);
      continue;
    }
    const Row row = row_of(first + i);
    INGOT_TRY(fill_batch_row(*row.source, row.index, first + i, i, batch_));
  }
  return static_cast<const Batch*>(&batch_);
}

}  // namespace ingot
