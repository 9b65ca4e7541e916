#include "infer/scorer.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "infer/testing.h"

namespace ingot {
namespace {

using testing::kGpt2;
using testing::kLlama;
using testing::model_of;
using testing::plain_logits;
using testing::some_ids;

double nats(const std::vector<float>& logits, int32_t target) {
  double total = 0;
  for (const float x : logits) total += std::exp(static_cast<double>(x));
  return std::log(total) - static_cast<double>(logits[static_cast<size_t>(target)]);
}

TEST(SlidingWindows, PredictEveryTokenButTheFirstOnce) {
  for (const int64_t tokens : {2, 3, 7, 8, 9, 12, 13, 40, 41}) {
    for (const int64_t stride : {1, 3, 4, 7}) {
      std::vector<int32_t> ids;
      for (int32_t i = 0; i < tokens; ++i) ids.push_back(100 + i);
      const SlidingWindows windows(ids, 8, stride);
      std::map<int32_t, int> predicted;
      for (int64_t w = 0; w < windows.count(); ++w) {
        const auto length = static_cast<size_t>(windows.length(w));
        ASSERT_TRUE(length >= 1 && length <= 8);
        std::vector<int32_t> in(length), targets(length), first(length), positions(length);
        ASSERT_TRUE(windows.fill(w, {in, targets, first, positions}).ok());
        for (size_t t = 0; t < length; ++t) {
          EXPECT_EQ(in[t], 100 + w * stride + static_cast<int64_t>(t));
          EXPECT_EQ(first[t], 0);
          EXPECT_EQ(positions[t], static_cast<int32_t>(t));
          if (targets[t] == kIgnored) continue;
          EXPECT_EQ(targets[t], in[t] + 1);
          ++predicted[targets[t]];
          EXPECT_TRUE(w == 0 || static_cast<int64_t>(t) + 1 >= 8 - stride);
        }
      }
      EXPECT_EQ(predicted.size(), static_cast<size_t>(tokens - 1)) << tokens << " tokens, stride " << stride;
      for (const auto& [target, count] : predicted) EXPECT_EQ(count, 1) << target;
    }
  }
}

TEST(SlidingWindows, WithoutOverlapTheFirstTokenOfAWindowIsNotPredicted) {
  const SlidingWindows windows(some_ids(20), 8, 8);
  ASSERT_EQ(windows.count(), 3);
  EXPECT_EQ(windows.length(2), 4);
  std::vector<int32_t> in(8), targets(8), first(8), positions(8);
  ASSERT_TRUE(windows.fill(1, {in, targets, first, positions}).ok());
  EXPECT_EQ(std::ranges::count(targets, kIgnored), 1);
  EXPECT_EQ(targets.back(), kIgnored);
}

TEST(SlidingWindows, NothingIsPredictedOfLessThanTwoTokens) {
  EXPECT_EQ(SlidingWindows({}, 8, 4).count(), 0);
  EXPECT_EQ(SlidingWindows({1}, 8, 4).count(), 0);
}

TEST(Scorer, GivesTheLossOfThePlainForward) {
  const ThreadPool pool(2);
  for (const char* json : {kGpt2, kLlama}) {
    const Model model = model_of(json);
    const std::vector<int32_t> ids = some_ids(45);
    double expected = 0;
    int64_t count = 0;
    for (int64_t begin = 0, done = 1; done < 45; begin += 6) {
      const int64_t end = std::min<int64_t>(45, begin + 16);
      const auto rows = plain_logits(model, {ids.begin() + begin, ids.begin() + end}, pool);
      for (; done < end; ++done, ++count)
        expected += nats(rows[static_cast<size_t>(done - begin - 1)], ids[static_cast<size_t>(done)]);
    }
    ASSERT_EQ(count, 44);
    for (const int64_t rows : {1, 4}) {
      auto scorer = Scorer::create(model, rows, 16, pool);
      ASSERT_TRUE(scorer.ok()) << scorer.error().message;
      initialize_weights(model, 7, (*scorer)->arena(), pool);
      EvaluationOptions options;
      options.sequence_length = 16;
      options.batch_size = rows;
      auto batches = EvaluationBatches::create({std::make_shared<SlidingWindows>(ids, 16, 6)}, options);
      const auto result =
          evaluate([&](const Batch& batch, float scale) { return (*scorer)->loss(batch, scale); }, *batches);
      ASSERT_TRUE(result.ok()) << result.error().message;
      EXPECT_EQ(result->tokens, 44);
      EXPECT_NEAR(result->loss, expected / 44, 1e-4 * expected / 44);
      EXPECT_NEAR(result->perplexity, std::exp(result->loss), 1e-9 * result->perplexity);
    }
  }
}

TEST(Scorer, RefusesMoreTokensThanTheModelHasPositions) {
  const ThreadPool pool(1);
  const auto scorer = Scorer::create(model_of(kGpt2), 1, 321, pool);
  ASSERT_FALSE(scorer.ok());
  EXPECT_EQ(scorer.error().kind, ErrorKind::usage);
}

}  // namespace
}  // namespace ingot
