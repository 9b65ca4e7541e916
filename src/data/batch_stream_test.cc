// Batches of a run: the order over ranks, resuming, prefetching.
#include "data/batch_stream.h"

#include <nlohmann/json.hpp>

#include "data/testing.h"

namespace ingot {
namespace {

using namespace data_testing;  // NOLINT: helpers of this folder's tests

// Rows of its own lengths, whose first id is the sequence's number; fails at one of them.
class NumberedSource final : public SequenceSource {
 public:
  explicit NumberedSource(std::vector<int64_t> lengths, int64_t faulty = -1)
      : lengths_(std::move(lengths)), faulty_(faulty) {}
  int64_t count() const override { return static_cast<int64_t>(lengths_.size()); }
  int64_t length(int64_t index) const override { return lengths_[static_cast<size_t>(index)]; }
  Status fill(int64_t index, const RowView& row) const override {
    if (index == faulty_) return input_error("sequence {} is damaged", index);
    if (index == faulty_ - 1000) throw std::runtime_error("a source that throws");
    std::fill(row.ids.begin(), row.ids.end(), static_cast<int32_t>(index));
    fill_as_one_document(row);
    return {};
  }
  uint64_t fingerprint() const override { return hash_bytes(std::as_bytes(std::span(lengths_))); }
  int32_t padding_token() const override { return 77; }

 private:
  std::vector<int64_t> lengths_;
  int64_t faulty_;
};

std::vector<MixturePart> numbered(int64_t count, int64_t length = 4) {
  return {{std::make_shared<NumberedSource>(std::vector<int64_t>(static_cast<size_t>(count), length)), std::nullopt}};
}

StreamOptions options_of(int64_t global, int64_t micro, int64_t length = 4) {
  StreamOptions options;
  options.sequence_length = length;
  options.global_batch_size = global;
  options.micro_batch_size = micro;
  return options;
}

// The first id of every row, step by step.
std::vector<std::vector<int32_t>> steps_of(BatchStream& stream, int steps) {
  std::vector<std::vector<int32_t>> out;
  for (int i = 0; i < steps; ++i) {
    const StepBatches* step = stream.next().value();
    out.emplace_back();
    for (const Batch& batch : step->micro)
      for (int64_t row = 0; row < batch.rows; ++row)
        out.back().push_back(batch.ids[static_cast<size_t>(row * batch.sequence_length)]);
  }
  return out;
}

std::unique_ptr<BatchStream> stream_of(std::vector<MixturePart> parts, const StreamOptions& options,
                                       const Cursor& start = {}) {
  return BatchStream::create(std::move(parts), options, start).value();
}

TEST(BatchStream, AStepHoldsItsMicroBatchesAndTheirCounts) {
  const auto stream = stream_of(numbered(20), options_of(6, 2));
  const StepBatches* step = stream->next().value();
  ASSERT_EQ(step->micro.size(), 3u);
  EXPECT_EQ(step->micro[1].rows, 2);
  EXPECT_EQ(step->micro[1].counted, 6);
  EXPECT_EQ(step->micro[1].samples, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(step->counted, 18);
  EXPECT_EQ(step->tokens, 24);
  EXPECT_EQ(stream->sequences_per_epoch(), 20);
  EXPECT_EQ(stream->steps_per_epoch(), 3);
}

TEST(BatchStream, TheGlobalSetOfAStepDoesNotDependOnTheRanks) {
  const auto alone = steps_of(*stream_of(numbered(50), options_of(8, 8)), 20);
  for (const auto& [ranks, micro] :
       std::vector<std::pair<int, int64_t>>{{1, 1}, {1, 4}, {2, 2}, {2, 4}, {4, 1}, {8, 1}}) {
    std::vector<std::vector<std::vector<int32_t>>> of_rank;
    for (int rank = 0; rank < ranks; ++rank) {
      StreamOptions options = options_of(8, micro);
      options.rank = rank;
      options.ranks = ranks;
      of_rank.push_back(steps_of(*stream_of(numbered(50), options), 20));
    }
    for (size_t step = 0; step < 20; ++step) {
      std::vector<int32_t> together;  // micro-batch by micro-batch, rank by rank
      const auto rows = static_cast<size_t>(micro);
      for (size_t i = 0; i < of_rank[0][step].size(); i += rows)
        for (const auto& steps : of_rank)
          together.insert(together.end(), steps[step].begin() + static_cast<std::ptrdiff_t>(i),
                          steps[step].begin() + static_cast<std::ptrdiff_t>(i + rows));
      EXPECT_EQ(together, alone[step]);
    }
  }
}

TEST(BatchStream, AResumedStreamGivesWhatAnUninterruptedOneGives) {
  const auto whole = steps_of(*stream_of(numbered(21), options_of(4, 2)), 30);  // into the sixth epoch
  for (int prefetch : {0, 1, 5}) {
    StreamOptions options = options_of(4, 2);
    options.prefetch_batches = prefetch;
    auto stream = stream_of(numbered(21), options);
    std::vector<std::vector<int32_t>> pieces;
    for (int steps : {1, 2, 9, 5, 13}) {  // stopped again and again, also in epoch 3, with steps made ahead
      for (auto& step : steps_of(*stream, steps)) pieces.push_back(std::move(step));
      ASSERT_VALUE(const Cursor cursor,
                   cursor_from_json(nlohmann::json::parse(cursor_to_json(stream->cursor()).dump()), "state.json"));
      EXPECT_EQ(cursor, stream->cursor());
      EXPECT_EQ(cursor.samples, static_cast<int64_t>(pieces.size()) * 4);
      EXPECT_EQ(cursor.epoch, cursor.samples / 21);
      EXPECT_EQ(cursor.epoch_samples, cursor.samples % 21);
      stream = stream_of(numbered(21), options, cursor);
    }
    EXPECT_EQ(pieces, whole);
  }
}

TEST(BatchStream, ACheckpointMayBeContinuedWithOtherBatchSizesAndRanks) {
  auto stream = stream_of(numbered(50), options_of(6, 2));
  steps_of(*stream, 5);
  StreamOptions options = options_of(6, 3);
  options.ranks = 2;
  options.rank = 1;
  stream = stream_of(numbered(50), options, stream->cursor());
  const StepBatches* step = stream->next().value();
  EXPECT_EQ(step->micro[0].samples, (std::vector<int64_t>{33, 34, 35}));
}

TEST(BatchStream, ACursorOfOtherDataIsRefused) {
  const auto stream = stream_of(numbered(50), options_of(4, 2));
  const Cursor cursor = stream->cursor();
  EXPECT_ERROR(BatchStream::create(numbered(51), options_of(4, 2), cursor), ErrorKind::input, "belongs to other data");
  StreamOptions options = options_of(4, 2);
  options.seed = 43;
  EXPECT_ERROR(BatchStream::create(numbered(50), options, cursor), ErrorKind::input, "belongs to other data");
}

TEST(BatchStream, SizesThatDoNotDivideAreUsageErrors) {
  EXPECT_ERROR(BatchStream::create(numbered(9), options_of(9, 2)), ErrorKind::usage,
               "global_batch_size 9 is not a multiple of 2");
  EXPECT_ERROR(BatchStream::create(numbered(9), options_of(8, 0)), ErrorKind::usage, "micro_batch_size 0");
  EXPECT_ERROR(BatchStream::create({}, options_of(8, 1)), ErrorKind::usage, "no training data");
}

TEST(BatchStream, AnErrorOfTheSourceComesWithItsStep) {
  for (int prefetch : {0, 3}) {
    StreamOptions options = options_of(2, 2);
    options.shuffle = false;
    options.prefetch_batches = prefetch;
    const auto source = std::make_shared<NumberedSource>(std::vector<int64_t>(20, 4), 7);
    const auto stream = stream_of({{source, std::nullopt}}, options);
    steps_of(*stream, 3);
    EXPECT_ERROR(stream->next(), ErrorKind::input, "sequence 7 is damaged");
    EXPECT_ERROR(stream->next(), ErrorKind::input, "sequence 7 is damaged");
    EXPECT_EQ(stream->cursor().samples, 6);
  }
}

TEST(BatchStream, AnExceptionOfTheSourceReachesTheCaller) {
  for (int prefetch : {0, 3}) {
    StreamOptions options = options_of(2, 2);
    options.shuffle = false;
    options.prefetch_batches = prefetch;
    const auto source = std::make_shared<NumberedSource>(std::vector<int64_t>(20, 4), 1003);
    const auto stream = stream_of({{source, std::nullopt}}, options);
    steps_of(*stream, 1);
    EXPECT_THROW((void)stream->next(), std::runtime_error);
  }
}

TEST(BatchStream, ASequenceThatIsTooLongIsAnError) {
  const auto source = std::make_shared<NumberedSource>(std::vector<int64_t>{9});
  const auto stream = stream_of({{source, std::nullopt}}, options_of(1, 1, 8));
  EXPECT_ERROR(stream->next(), ErrorKind::input, "9 tokens; expected 1 to 8");
}

TEST(BatchStream, EndingItWithStepsMadeAheadIsClean) {
  for (int i = 0; i < 50; ++i) {
    const auto stream = stream_of(numbered(20), options_of(4, 2));
    steps_of(*stream, i % 4);
  }
}

TEST(BatchStream, TheSteadyStateAllocatesNothing) {
  std::vector<int64_t> lengths;
  for (int64_t i = 0; i < 300; ++i) lengths.push_back(2 + i * 31 % 250);
  for (bool packing : {true, false}) {
    StreamOptions options = options_of(8, 2, 256);
    options.prefetch_batches = 2;
    const auto source = make_sequences(Segments::all(fake_store(lengths)), {256, packing, true}).value();
    const auto stream = stream_of({{source, std::nullopt}}, options);
    for (int i = 0; i < 20; ++i) ASSERT_TRUE(stream->next().ok());
    const int64_t before = allocations_so_far();
    for (int i = 0; i < 200; ++i) (void)stream->next();
    EXPECT_EQ(allocations_so_far() - before, 0);
  }
}

TEST(BatchStream, RowsOfAStepAreSortedByLengthAndPaddedToAFewShapes) {
  std::vector<int64_t> lengths;
  for (int64_t i = 0; i < 64; ++i) lengths.push_back(1 + i * 37 % 512);
  const auto source = std::make_shared<NumberedSource>(lengths);
  const std::vector<int64_t> shapes = padded_lengths(512);
  EXPECT_EQ(shapes, (std::vector<int64_t>{64, 128, 192, 256, 320, 384, 448, 512}));
  const auto stream = stream_of({{source, std::nullopt}}, options_of(16, 4, 512));
  for (int s = 0; s < 8; ++s) {
    const StepBatches* step = stream->next().value();
    int64_t before = 512, tokens = 0;
    for (const Batch& batch : step->micro) {
      EXPECT_NE(std::find(shapes.begin(), shapes.end(), batch.sequence_length), shapes.end());
      EXPECT_LE(batch.sequence_length, before);
      before = batch.sequence_length;
      Batch copy = batch;
      for (int64_t r = 0; r < batch.rows; ++r) {
        const RowView row = copy.row(r);
        const int64_t length = lengths[static_cast<size_t>(row.ids[0])];
        tokens += length;
        EXPECT_LE(length, batch.sequence_length);
        for (int64_t t = length; t < batch.sequence_length; ++t) {
          const auto at = static_cast<size_t>(t);
          ASSERT_EQ(row.ids[at], 77);
          ASSERT_EQ(row.targets[at], kIgnored);
          ASSERT_EQ(row.segment_start[at], t);
        }
      }
    }
    EXPECT_EQ(step->tokens, tokens);
    EXPECT_EQ(step->counted, tokens - 16);
  }
}

TEST(BatchStream, ShapesAreBoundedForAnyLength) {
  for (int64_t length : {1, 31, 32, 33, 100, 1000, 1024, 100000}) {
    const std::vector<int64_t> shapes = padded_lengths(length);
    EXPECT_LE(shapes.size(), 8u);
    EXPECT_EQ(shapes.back(), length);
    for (int64_t n : {int64_t{1}, length / 3 + 1, length}) {
      EXPECT_GE(padded_length(n, length), n);
      EXPECT_NE(std::find(shapes.begin(), shapes.end(), padded_length(n, length)), shapes.end());
    }
  }
}

TEST(BatchStream, AMixtureDrawsByWeight) {
  const auto small = std::make_shared<NumberedSource>(std::vector<int64_t>(3, 4));
  const auto large = std::make_shared<NumberedSource>(std::vector<int64_t>(100, 2));
  const auto stream = stream_of({{small, 3.0}, {large, std::nullopt}}, options_of(4, 4));
  for (int i = 0; i < 50; ++i) EXPECT_EQ(stream->next().value()->tokens, 3 * 4 + 2);
}

TEST(BatchStream, TextBytesAreThoseOfCountedTargets) {
  class Bytes final : public SequenceSource {
   public:
    int64_t count() const override { return 1; }
    int64_t length(int64_t) const override { return 4; }
    Status fill(int64_t, const RowView& row) const override {
      for (int32_t t = 0; t < 4; ++t) row.ids[static_cast<size_t>(t)] = t;
      fill_as_one_document(row);
      row.targets[0] = kIgnored;
      return {};
    }
    std::span<const uint16_t> token_bytes() const override { return bytes_; }
    uint64_t fingerprint() const override { return 1; }
    std::vector<uint16_t> bytes_{1000, 100, 10, 5};
  };
  const auto stream = stream_of({{std::make_shared<Bytes>(), std::nullopt}}, options_of(2, 1));
  EXPECT_EQ(stream->next().value()->text_bytes, 30);
}

TEST(Cursor, AMalformedOneSaysWhichKey) {
  const nlohmann::json good = cursor_to_json({10, 1, 2, 3});
  for (const char* key : {"samples", "epoch", "epoch_samples", "data"}) {
    nlohmann::json json = good;
    json[key] = -1;
    EXPECT_ERROR(cursor_from_json(json, "state.json"), ErrorKind::input, key);
  }
  EXPECT_ERROR(cursor_from_json(nlohmann::json(), "state.json"), ErrorKind::input, "not an object");
}

TEST(BatchStream, TellsALogThatListensWhatItReadAndPacked) {
  const auto store = fake_store({45, 30, 61});
  for (const int prefetch : {0, 2}) {
    DataLog log(100);
    StreamOptions options = options_of(2, 1, 8);
    options.log = &log;
    options.prefetch_batches = prefetch;
    auto stream = stream_of({{make_sequences(Segments::all(store), {8, true, true}).value(), std::nullopt}}, options);
    ASSERT_TRUE(stream->next().ok());
    EXPECT_TRUE(log.spans().empty()) << "nobody listened";
    log.listen(true);
    for (int i = 0; i < 8; ++i) ASSERT_TRUE(stream->next().ok());
    log.listen(false);
    stream.reset();
    int64_t packings = 0, readings = 0, readings_inside = 0;
    for (const DataSpan& span : log.spans()) {
      EXPECT_GT(span.end, span.begin);
      if (span.stage == DataStage::reading) ++readings;
      if (span.stage != DataStage::packing) continue;
      ++packings;
      EXPECT_GE(span.cpu, 0);
      EXPECT_GE(span.queued, 0);
      for (const DataSpan& inner : log.spans())
        readings_inside += inner.stage == DataStage::reading && inner.begin >= span.begin && inner.end <= span.end;
    }
    EXPECT_GE(packings, 5);
    // A worker of its own may be within a step when nobody listens any more: the rest of its readings is not noted.
    const int64_t cut_off = prefetch > 0 ? 1 : 0;
    EXPECT_GE(readings_inside, 2 * (packings - cut_off));
    EXPECT_LE(readings - readings_inside, 8) << "at most those of a step whose packing had begun before";
  }
}

TEST(DataLog, KeepsRoomForWholeStepsAndCountsWhatDoesNotFit) {
  DataLog log(8);
  log.listen(true);
  for (int i = 0; i < 10; ++i) log.add({DataStage::reading, i, i + 1});
  EXPECT_EQ(log.spans().size(), 6u);
  EXPECT_EQ(log.dropped(), 4);
  for (int i = 0; i < 3; ++i) log.add({DataStage::packing, i, i + 1});
  EXPECT_EQ(log.spans().size(), 8u);
  EXPECT_EQ(log.dropped(), 5);
}

}  // namespace
}  // namespace ingot
