#include "kernels/embedding/embedding.h"

#include "base/check.h"
#include "kernels/embedding/embedding_reference.h"
#include "kernels/testing.h"

namespace ingot::kernels {
namespace {

using testing::Guarded;
using testing::normal_numbers;

constexpr int64_t kVocab = 11, kRows = 29;

Guarded<int32_t> some_ids(int64_t bound, uint64_t seed) {
  Guarded<int32_t> ids(kRows);
  for (int64_t i = 0; i < kRows; ++i) {
    ids[i] = static_cast<int32_t>(bounded_at(seed, static_cast<uint64_t>(i), static_cast<uint64_t>(bound)));
  }
  return ids;
}

TEST(Embedding, PicksRowsAndAddsPositions) {
  testing::on_each_instruction_set([] {
    for (int64_t width : testing::kOddSizes) {
      const Guarded<float> table = normal_numbers(kVocab * width, 1), positions = normal_numbers(7 * width, 2);
      const Guarded<int32_t> ids = some_ids(kVocab, 3), at = some_ids(7, 4);
      Guarded<float> out(kRows * width), sum(kRows * width), expected(kRows * width);
      reference::embedding(table.data(), ids.data(), kRows, width, expected.data());
      Embedding args{.shape = {kVocab, width}, .table = table.data(), .ids = ids.data(), .out = out.data()};
      embedding(args, 0, 10);
      embedding(args, 10, kRows);
      args.out = sum.data(), args.position_table = positions.data(), args.positions = at.data();
      embedding(args, 0, kRows);
      ASSERT_TRUE(out.intact() && sum.intact());
      for (int64_t i = 0; i < kRows * width; ++i) {
        ASSERT_EQ(out[i], expected[i]);
        ASSERT_EQ(sum[i], expected[i] + positions[at[i / width] * width + i % width]);
      }
    }
  });
}

TEST(Embedding, GradientAddsInTheOrderOfRowsForAnyCutOfColumns) {
  testing::on_each_instruction_set([] {
    for (int64_t width : testing::kOddSizes) {
      const Guarded<float> dy = normal_numbers(kRows * width, 1), before = normal_numbers(kVocab * width, 2);
      const Guarded<int32_t> ids = some_ids(kVocab, 3);
      Guarded<float> whole = before, cut = before, expected = before;
      reference::embedding_grad(ids.data(), kRows, dy.data(), width, expected.data());
      EmbeddingGrad args{{kVocab, width}, ids.data(), kRows, dy.data(), whole.data()};
      embedding_grad(args, 0, width);
      args.d_table = cut.data();
      for (int64_t c = 0; c < width; c += 24) embedding_grad(args, c, std::min(width, c + 24));
      EXPECT_TRUE(whole.same_bits(expected)) << width;
      EXPECT_TRUE(cut.same_bits(expected)) << width;
    }
  });
}

TEST(Embedding, ShardsOfTheTableTogetherGiveTheWhole) {
  testing::on_each_instruction_set([] {
    const int64_t width = 18, cut = 4;
    const Guarded<float> table = normal_numbers(kVocab * width, 1);
    const Guarded<int32_t> ids = some_ids(kVocab, 3);
    Guarded<float> low(kRows * width), high(kRows * width), grad(kVocab * width), whole_grad(kVocab * width);
    const EmbeddingTable shard0{cut, width, 0, kVocab}, shard1{kVocab - cut, width, cut, kVocab};
    embedding({.shape = shard0, .table = table.data(), .ids = ids.data(), .out = low.data()}, 0, kRows);
    embedding({.shape = shard1, .table = table.data() + cut * width, .ids = ids.data(), .out = high.data()}, 0, kRows);
    for (int64_t i = 0; i < kRows * width; ++i) {
      ASSERT_EQ(low[i] + high[i], table[ids[i / width] * width + i % width]);
    }
    std::fill_n(grad.data(), grad.size(), 0.0f);
    std::fill_n(whole_grad.data(), grad.size(), 0.0f);
    embedding_grad({shard0, ids.data(), kRows, low.data(), grad.data()}, 0, width);
    embedding_grad({shard1, ids.data(), kRows, high.data(), grad.data() + cut * width}, 0, width);
    for (int64_t i = 0; i < kRows * width; ++i) low[i] += high[i];
    embedding_grad({{kVocab, width}, ids.data(), kRows, low.data(), whole_grad.data()}, 0, width);
    EXPECT_TRUE(grad.same_bits(whole_grad));
  });
}

TEST(Embedding, IdOutsideTheVocabularyIsRefused) {
  Guarded<float> table = normal_numbers(8, 1), out(4);
  for (int32_t id : {-1, 2}) {
    EXPECT_THROW(embedding({.shape = {2, 4}, .table = table.data(), .ids = &id, .out = out.data()}, 0, 1), BugError);
    EXPECT_THROW(embedding_grad({{2, 4}, &id, 1, out.data(), table.data()}, 0, 4), BugError);
  }
}

}  // namespace
}  // namespace ingot::kernels
