#include "infer/likelihood.h"

#include <algorithm>
#include <cmath>

#include "infer/testing.h"

namespace ingot {
namespace {

using testing::kGpt2;
using testing::kLlama;
using testing::kMistral;
using testing::model_of;
using testing::plain_logits;
using testing::some_ids;

std::unique_ptr<LikelihoodScorer> likelihoods_of(const Model& model, int64_t rows, const ThreadPool& pool) {
  auto scorer = LikelihoodScorer::create(model, rows, 310, pool);
  EXPECT_TRUE(scorer.ok()) << scorer.error().message;
  initialize_weights(model, 7, (*scorer)->arena(), pool);
  return std::move(*scorer);
}

EndingGroup group_with(std::vector<int32_t> prefix, const std::vector<std::pair<std::vector<int32_t>, int64_t>>& ends) {
  EndingGroup group{std::move(prefix), {}};
  for (const auto& [ids, first] : ends) group.endings.push_back({ids, first});
  return group;
}

std::vector<int32_t> ids_from(int32_t seed, size_t count) {
  std::vector<int32_t> ids = some_ids(count + static_cast<size_t>(seed));
  ids.erase(ids.begin(), ids.begin() + seed);
  return ids;
}

// Prefixes of every length class, some with a common beginning; endings of one token and of several batches, one that
// another begins with, and one of which only the last tokens count.
std::vector<EndingGroup> some_groups() {
  std::vector<int32_t> longer = ids_from(3, 70);
  longer.push_back(11);
  return {group_with(ids_from(3, 70), {{{7, 8}, 1}, {{7, 9}, 1}, {{7, 9, 10}, 1}}),
          group_with(longer, {{{1, 2}, 1}, {{1, 3, 4, 5, 6}, 3}}),
          group_with({}, {{ids_from(5, 40), 1}, {ids_from(5, 41), 17}}),
          group_with(ids_from(9, 270), {{ids_from(20, 19), 2}, {{60, 0}, 1}}),
          group_with({4}, {{ids_from(1, 33), 30}})};
}

double plain_log_likelihood(const Model& model, const std::vector<int32_t>& prefix, const Ending& ending,
                            const ThreadPool& pool) {
  std::vector<int32_t> ids = prefix;
  ids.insert(ids.end(), ending.ids.begin(), ending.ids.end());
  const auto rows = plain_logits(model, ids, pool);
  double sum = 0;
  for (size_t t = prefix.size() + static_cast<size_t>(ending.first); t < ids.size(); ++t) {
    double total = 0;
    for (const float x : rows[t - 1]) total += std::exp(static_cast<double>(x));
    sum += static_cast<double>(rows[t - 1][static_cast<size_t>(ids[t])]) - std::log(total);
  }
  return sum;
}

TEST(LikelihoodScorer, AgreesWithPlainForwardsOneByOneForAnyBatchSize) {
  const ThreadPool pool(2);
  for (const char* json : {kGpt2, kLlama, kMistral}) {
    const Model model = model_of(json);
    const std::vector<EndingGroup> groups = some_groups();
    std::vector<std::vector<double>> expected;
    for (const EndingGroup& group : groups) {
      expected.emplace_back();
      for (const Ending& ending : group.endings)
        expected.back().push_back(plain_log_likelihood(model, group.prefix, ending, pool));
    }
    for (const size_t rows : {1u, 3u, 7u}) {
      auto scorer = likelihoods_of(model, static_cast<int64_t>(rows), pool);
      for (size_t begin = 0; begin < groups.size(); begin += rows) {
        const auto now = std::span(groups).subspan(begin, std::min(rows, groups.size() - begin));
        const auto found = scorer->score(now);
        ASSERT_TRUE(found.ok()) << found.error().message;
        for (size_t g = 0; g < now.size(); ++g)
          for (size_t e = 0; e < now[g].endings.size(); ++e)
            EXPECT_NEAR((*found)[g][e], expected[begin + g][e], 1e-4 * std::max(1.0, -expected[begin + g][e]))
                << json << ", " << rows << " rows, group " << begin + g << ", ending " << e;
      }
    }
  }
}

TEST(LikelihoodScorer, TheSameBitsForAnyNumberOfThreads) {
  const Model model = model_of(kLlama);
  std::vector<std::vector<std::vector<double>>> results;
  for (const int threads : {1, 3}) {
    const ThreadPool pool(threads);
    auto scorer = likelihoods_of(model, 5, pool);
    results.push_back(scorer->score(some_groups()).value());
  }
  EXPECT_EQ(results[0], results[1]);
}

TEST(LikelihoodScorer, AGroupTakesWhatAllItsSequencesShare) {
  const std::vector<std::vector<int32_t>> sequences{{1, 2, 3, 4}, {1, 2, 3, 5, 6}, {1, 2, 3, 4, 7}};
  const std::vector<int64_t> first{3, 3, 3};
  const EndingGroup group = group_of(sequences, first);
  EXPECT_EQ(group.prefix, (std::vector<int32_t>{1, 2}));
  ASSERT_EQ(group.endings.size(), 3u);
  EXPECT_EQ(group.endings[1].ids, (std::vector<int32_t>{3, 5, 6}));
  EXPECT_EQ(group.endings[1].first, 1);
  EXPECT_EQ(group.tokens(), 4);
  // Sequences that part early share only as much.
  const EndingGroup apart =
      group_of(std::vector<std::vector<int32_t>>{{1, 2, 3}, {1, 9, 3}}, std::vector<int64_t>{2, 2});
  EXPECT_EQ(apart.prefix, std::vector<int32_t>{1});
  EXPECT_EQ(apart.endings[0].first, 1);
}

TEST(LikelihoodScorer, RefusesATokenThatTheVocabularyLacks) {
  const ThreadPool pool(1);
  const Model model = model_of(kGpt2);
  auto scorer = likelihoods_of(model, 1, pool);
  const std::vector<EndingGroup> groups{group_with({1}, {{{2, 61}, 1}})};
  const auto found = scorer->score(groups);
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().kind, ErrorKind::input);
  EXPECT_NE(found.error().message.find("61"), std::string::npos);
}

}  // namespace
}  // namespace ingot
