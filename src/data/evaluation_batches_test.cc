#include "data/evaluation_batches.h"

#include "data/testing.h"

namespace ingot {
namespace {

using namespace data_testing;  // NOLINT: helpers of this folder's tests

std::vector<std::shared_ptr<const SequenceSource>> two_sources() {
  return {make_sequences(Segments::all(fake_store({12})), {4, true, true}).value(),
          make_sequences(Segments::all(fake_store({20})), {4, true, true}).value()};
}

EvaluationBatches batches_of(int64_t rows, int64_t max_batches, int rank = 0, int ranks = 1) {
  return EvaluationBatches::create(two_sources(), {4, rows, max_batches, rank, ranks}).value();
}

TEST(EvaluationBatches, SequencesComeOnceInTheirOwnOrder) {
  EvaluationBatches batches = batches_of(3, 0);
  ASSERT_EQ(batches.batches(), 3);
  std::vector<int32_t> first_ids;
  int64_t counted = 0;
  for (int64_t i = 0; i < 3; ++i) {
    const Batch* batch = batches.batch(i).value();
    EXPECT_EQ(batch->rows, 3);
    counted += batch->counted;
    for (int64_t row = 0; row < 3; ++row)
      if (batch->samples[static_cast<size_t>(row)] >= 0) first_ids.push_back(batch->ids[static_cast<size_t>(row * 4)]);
  }
  EXPECT_EQ(first_ids, (std::vector<int32_t>{0, 4, 8, 0, 4, 8, 12, 16}));
  EXPECT_EQ(counted, 8 * 3);
}

TEST(EvaluationBatches, AtMostSoManyAreGiven) {
  EXPECT_EQ(batches_of(2, 3).rounds(), 3);
  EXPECT_EQ(batches_of(2, 100).rounds(), 4);
}

TEST(EvaluationBatches, RanksTakeTurnsAndMeetInEveryRound) {
  std::vector<int64_t> samples;
  for (int rank = 0; rank < 3; ++rank) {
    EvaluationBatches batches = batches_of(2, 0, rank, 3);
    ASSERT_EQ(batches.rounds(), 2);
    for (int64_t round = 0; round < 2; ++round) {
      const Batch* batch = batches.batch(round).value();
      const bool has_any = round * 3 + rank < 4;
      EXPECT_EQ(batch->counted, has_any ? 6 : 0);
      for (int64_t sample : batch->samples)
        if (sample >= 0) samples.push_back(sample);
    }
  }
  std::sort(samples.begin(), samples.end());
  EXPECT_EQ(samples, (std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6, 7}));
}

TEST(EvaluationBatches, NoDataIsAnInputError) {
  EXPECT_ERROR(EvaluationBatches::create({}, {4, 1, 0, 0, 1}), ErrorKind::input, "validation");
  EXPECT_ERROR(EvaluationBatches::create(two_sources(), {4, 0, 0, 0, 1}), ErrorKind::usage, "0 rows");
}

}  // namespace
}  // namespace ingot
