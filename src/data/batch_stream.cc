#include "data/batch_stream.h"

#include <algorithm>
#include <bit>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <numeric>
#include <thread>

#include "base/check.h"
#include "base/hash.h"
#include "base/log.h"

namespace ingot {

// Makes the batches of one step after the other.
class BatchStream::Maker {
 public:
  static Result<std::unique_ptr<Maker>> create(std::vector<MixturePart> parts, const StreamOptions& options,
                                               const Cursor& start);

  Status make(StepBatches& step);
  const Cursor& cursor() const { return cursor_; }
  int64_t epoch_size() const { return order_.epoch_size(); }
  const StreamOptions& options() const { return options_; }
  StepBatches empty_step() const;

 private:
  struct Row {
    Sample sample;
    int64_t number = 0;
    int64_t length = 0;
  };
  Maker(std::vector<MixturePart> parts, const StreamOptions& options, SampleOrder order)
      : parts_(std::move(parts)), options_(options), order_(std::move(order)) {}
  const SequenceSource& source(const Sample& sample) const {
    return *parts_[static_cast<size_t>(sample.source)].sequences;
  }
  uint64_t fingerprint() const;
  Cursor cursor_at(int64_t samples) const;
  void draw_rows();
  Status make_micro(std::span<const Row> rows, Batch& batch) const;
  void warn_of_padding(const StepBatches& step);

  std::vector<MixturePart> parts_;
  StreamOptions options_;
  SampleOrder order_;
  Cursor cursor_;
  std::vector<Row> rows_;  // of the step
  bool warned_ = false;
};

namespace {

Status check_options(const StreamOptions& options) {
  if (options.sequence_length < 1 || options.micro_batch_size < 1 || options.global_batch_size < 1)
    return usage_error("sequence_length {}, micro_batch_size {} and global_batch_size {}; expected at least 1 each",
                       options.sequence_length, options.micro_batch_size, options.global_batch_size);
  INGOT_CHECK(options.ranks >= 1 && options.rank >= 0 && options.rank < options.ranks, "rank {} of {}", options.rank,
              options.ranks);
  if (options.prefetch_batches < 0)
    return usage_error("prefetch_batches is {}; expected at least 0", options.prefetch_batches);
  const int64_t unit = options.micro_batch_size * options.ranks;
  if (options.global_batch_size % unit == 0) return {};
  return usage_error("global_batch_size {} is not a multiple of {}: micro_batch_size {} x {} data-parallel ranks",
                     options.global_batch_size, unit, options.micro_batch_size, options.ranks);
}

std::vector<double> weights_of(std::span<const MixturePart> parts) {
  std::vector<double> weights;
  const bool weighted =
      std::any_of(parts.begin(), parts.end(), [](const MixturePart& part) { return part.weight.has_value(); });
  for (const MixturePart& part : parts)
    if (weighted) weights.push_back(part.weight.value_or(1.0));
  return weights;
}

}  // namespace

Result<std::unique_ptr<BatchStream::Maker>> BatchStream::Maker::create(std::vector<MixturePart> parts,
                                                                       const StreamOptions& options,
                                                                       const Cursor& start) {
  INGOT_TRY(check_options(options));
  if (parts.empty()) return usage_error("no training data was given; expected at least one entry of data.train");
  std::vector<int64_t> counts;
  for (const MixturePart& part : parts) counts.push_back(part.sequences->count());
  if (std::find(counts.begin(), counts.end(), 0) != counts.end()) return input_error("a data source holds no sequence");
  INGOT_ASSIGN(SampleOrder order, SampleOrder::create(counts, weights_of(parts), options.seed, options.shuffle));
  std::unique_ptr<Maker> maker(new Maker(std::move(parts), options, std::move(order)));
  maker->rows_.resize(static_cast<size_t>(options.global_batch_size));
  maker->cursor_ = maker->cursor_at(start.samples);
  if (start.data != 0 && start.data != maker->cursor_.data)
    return input_error(
        "the data position to continue from ({} sequences consumed) belongs to other data or another order of it "
        "(fingerprint "
        "{}, this run's is {}); continue with the data, sequence_length and seed of that run, or start anew",
        start.samples, hash_text(start.data), hash_text(maker->cursor_.data));
  return maker;
}

uint64_t BatchStream::Maker::fingerprint() const {
  std::vector<uint64_t> parts{options_.seed, options_.shuffle ? 1u : 0u};
  for (const MixturePart& part : parts_) {
    parts.push_back(part.sequences->fingerprint());
    parts.push_back(static_cast<uint64_t>(part.sequences->count()));
    parts.push_back(std::bit_cast<uint64_t>(part.weight.value_or(-1.0)));
  }
  return std::max<uint64_t>(hash_bytes(std::as_bytes(std::span(parts))), 1);
}

Cursor BatchStream::Maker::cursor_at(int64_t samples) const {
  const uint64_t data = cursor_.data != 0 ? cursor_.data : fingerprint();
  return {samples, samples / epoch_size(), samples % epoch_size(), data};
}

StepBatches BatchStream::Maker::empty_step() const {
  StepBatches step;
  step.micro.resize(static_cast<size_t>(options_.global_batch_size / (options_.micro_batch_size * options_.ranks)));
  for (Batch& batch : step.micro) batch.resize(options_.micro_batch_size, options_.sequence_length);
  return step;
}

void BatchStream::Maker::draw_rows() {
  bool is_even = true;
  for (size_t g = 0; g < rows_.size(); ++g) {
    Row& row = rows_[g];
    row.number = cursor_.samples + static_cast<int64_t>(g);
    row.sample = order_.at(row.number);
    row.length = source(row.sample).length(row.sample.index);
    is_even &= row.length == rows_[0].length;
  }
  if (is_even) return;
  std::sort(rows_.begin(), rows_.end(), [](const Row& a, const Row& b) {
    return a.length != b.length ? a.length > b.length : a.number < b.number;
  });
}

Status BatchStream::Maker::make_micro(std::span<const Row> rows, Batch& batch) const {
  int64_t longest = 0;
  for (const Row& row : rows) longest = std::max(longest, row.length);
  batch.resize(static_cast<int64_t>(rows.size()), padded_length(longest, options_.sequence_length));
  for (size_t i = 0; i < rows.size(); ++i)
    INGOT_TRY(fill_batch_row(source(rows[i].sample), rows[i].sample.index, rows[i].number, static_cast<int64_t>(i),
                             batch, options_.log));
  return {};
}

Status BatchStream::Maker::make(StepBatches& step) {
  const DataScope scope(options_.log, DataStage::packing);
  draw_rows();
  step.tokens = step.counted = step.text_bytes = 0;
  const auto micro_rows = static_cast<size_t>(options_.micro_batch_size), ranks = static_cast<size_t>(options_.ranks);
  for (size_t i = 0; i < step.micro.size(); ++i) {
    const size_t first = (i * ranks + static_cast<size_t>(options_.rank)) * micro_rows;
    INGOT_TRY(make_micro(std::span(rows_).subspan(first, micro_rows), step.micro[i]));
    step.tokens += step.micro[i].tokens;
    step.counted += step.micro[i].counted;
    step.text_bytes += step.micro[i].text_bytes;
  }
  warn_of_padding(step);
  cursor_ = cursor_at(cursor_.samples + options_.global_batch_size);
  step.cursor = cursor_;
  return {};
}

void BatchStream::Maker::warn_of_padding(const StepBatches& step) {
  if (warned_) return;
  for (const Batch& batch : step.micro) {
    const int64_t size = batch.rows * batch.sequence_length;
    if (batch.tokens * 2 >= size) continue;
    log_warning(
        "a batch of {} x {} holds {} tokens, the rest is padding; packing: true puts short documents end to end",
        batch.rows, batch.sequence_length, batch.tokens);
    warned_ = true;
    return;
  }
}

// Slots go round: free, being made, ready, given out, free.
class BatchStream::Prefetcher {
 public:
  Prefetcher(Maker& maker, int steps) : maker_(maker) {
    slots_.resize(static_cast<size_t>(steps) + 1);  // one is with the consumer
    for (StepBatches& slot : slots_) slot = maker.empty_step();
    thread_ = std::thread([this] { run(); });
  }
  ~Prefetcher() {
    {
      std::lock_guard lock(mutex_);
      is_stopping_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  Result<const StepBatches*> next() {
    std::unique_lock lock(mutex_);
    is_given_out_ = false;  // the slot before `taken_` is free again
    changed_.notify_all();
    changed_.wait(lock, [&] { return made_ > taken_ || is_done_; });
    if (made_ > taken_) {
      is_given_out_ = true;
      return static_cast<const StepBatches*>(&slots_[taken_++ % slots_.size()]);
    }
    if (exception_) std::rethrow_exception(exception_);
    return *error_;
  }

 private:
  bool has_free_slot() const { return made_ - taken_ + (is_given_out_ ? 1 : 0) < slots_.size(); }

  void run() {
    std::unique_lock lock(mutex_);
    while (!is_done_) {
      changed_.wait(lock, [&] { return is_stopping_ || has_free_slot(); });
      if (is_stopping_) return;
      StepBatches& slot = slots_[made_ % slots_.size()];
      lock.unlock();
      make(slot);
      lock.lock();
      if (error_ || exception_)
        is_done_ = true;
      else
        ++made_;
      changed_.notify_all();
    }
  }

  void make(StepBatches& slot) {
    try {
      if (Status status = maker_.make(slot); !status.ok()) error_ = status.error();
    } catch (...) {  // rethrown by next()
      exception_ = std::current_exception();
    }
  }

  Maker& maker_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<StepBatches> slots_;
  size_t made_ = 0, taken_ = 0;  // steps so far
  bool is_given_out_ = false;    // whether the consumer still has slot taken_ - 1
  bool is_stopping_ = false, is_done_ = false;
  std::optional<Error> error_;  // written by the thread before is_done_
  std::exception_ptr exception_;
  std::thread thread_;
};

BatchStream::BatchStream(std::unique_ptr<Maker> maker, int prefetch)
    : maker_(std::move(maker)), cursor_(maker_->cursor()) {
  if (prefetch > 0)
    prefetcher_ = std::make_unique<Prefetcher>(*maker_, prefetch);
  else
    own_ = maker_->empty_step();
}

BatchStream::~BatchStream() = default;

Result<std::unique_ptr<BatchStream>> BatchStream::create(std::vector<MixturePart> parts, const StreamOptions& options,
                                                         const Cursor& start) {
  INGOT_ASSIGN(std::unique_ptr<Maker> maker, Maker::create(std::move(parts), options, start));
  return std::unique_ptr<BatchStream>(new BatchStream(std::move(maker), options.prefetch_batches));
}

Result<const StepBatches*> BatchStream::next() {
  const StepBatches* step = &own_;
  if (prefetcher_) {
    INGOT_ASSIGN(step, prefetcher_->next());
  } else {
    INGOT_TRY(maker_->make(own_));
  }
  cursor_ = step->cursor;
  return step;
}

const Cursor& BatchStream::cursor() const {
  return cursor_;
}
int64_t BatchStream::sequences_per_epoch() const {
  return maker_->epoch_size();
}
int64_t BatchStream::steps_per_epoch() const {
  return maker_->epoch_size() / maker_->options().global_batch_size;
}

}  // namespace ingot
