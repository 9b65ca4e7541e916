#include "infer/sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <set>

namespace ingot {
namespace {

const std::vector<float> kLogits{0.5f, 2.0f, -1.0f, 2.0f, 1.0f, -std::numeric_limits<float>::infinity(), 0.0f};

std::map<int32_t, int> draws(const SamplingOptions& options, int64_t count,
                             const std::vector<float>& logits = kLogits) {
  Sampler sampler(options);
  std::map<int32_t, int> counts;
  for (int64_t position = 0; position < count; ++position) ++counts[sampler.sample(logits, position).value()];
  return counts;
}

TEST(Sampler, TemperatureZeroTakesTheFirstOfTheMostProbable) {
  EXPECT_EQ(draws({.temperature = 0}, 20), (std::map<int32_t, int>{{1, 20}}));
}

TEST(Sampler, OneCandidateIsGreedy) {
  EXPECT_EQ(draws({.top_k = 1}, 20), (std::map<int32_t, int>{{1, 20}}));
  EXPECT_EQ(draws({.top_p = 1e-9}, 20), (std::map<int32_t, int>{{1, 20}}));
  EXPECT_EQ(draws({.temperature = 1e-300}, 20, {0.1f, 0.3f, 0.2f}), (std::map<int32_t, int>{{1, 20}}));
}

TEST(Sampler, DrawsByTheProbabilities) {
  constexpr int64_t kDraws = 40000;
  for (const double temperature : {0.7, 1.0, 2.0}) {
    const auto counts = draws({.temperature = temperature}, kDraws);
    double total = 0;
    for (const float logit : kLogits) total += std::exp(static_cast<double>(logit) / temperature);
    EXPECT_FALSE(counts.contains(5));
    for (const auto& [id, count] : counts) {
      const double p = std::exp(static_cast<double>(kLogits[static_cast<size_t>(id)]) / temperature) / total;
      EXPECT_NEAR(count, p * kDraws, 5 * std::sqrt(kDraws * p * (1 - p))) << id << " at " << temperature;
    }
  }
}

TEST(Sampler, TopKAndTopPKeepTheMostProbable) {
  const auto ids = [](const SamplingOptions& options) {
    std::set<int32_t> seen;
    for (const auto& [id, count] : draws(options, 4000)) seen.insert(id);
    return seen;
  };
  // Probabilities: 1 and 3 have 0.360 each, 4 has 0.133, 0 has 0.080, 6 has 0.049, 2 has 0.018.
  EXPECT_EQ(ids({.top_k = 2}), (std::set<int32_t>{1, 3}));
  EXPECT_EQ(ids({.top_k = 3}), (std::set<int32_t>{1, 3, 4}));
  EXPECT_EQ(ids({.top_k = 100}), (std::set<int32_t>{0, 1, 2, 3, 4, 6}));
  EXPECT_EQ(ids({.top_p = 0.69}), (std::set<int32_t>{1, 3}));
  EXPECT_EQ(ids({.top_p = 0.73}), (std::set<int32_t>{1, 3, 4}));
  EXPECT_EQ(ids({.top_p = 0.95}), (std::set<int32_t>{0, 1, 3, 4, 6}));
  EXPECT_EQ(ids({.top_k = 3, .top_p = 0.5}), (std::set<int32_t>{1, 3}));
}

TEST(Sampler, TheSameSeedAndPositionIsTheSameToken) {
  const std::vector<float> flat(1000, 0.0f);
  Sampler one({.seed = 3}), two({.seed = 3}), other({.seed = 4});
  int differences = 0;
  std::vector<int32_t> forward;
  for (int64_t position = 0; position < 50; ++position) forward.push_back(*one.sample(flat, position));
  for (int64_t position = 49; position >= 0; --position) {
    EXPECT_EQ(*two.sample(flat, position), forward[static_cast<size_t>(position)]);
    differences += *other.sample(flat, position) != forward[static_cast<size_t>(position)];
  }
  EXPECT_GT(differences, 40);
}

TEST(Sampler, RefusesWhatIsNoDistribution) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  for (const double temperature : {0.0, 1.0}) {
    Sampler sampler({.temperature = temperature});
    for (const std::vector<float>& logits :
         {std::vector{1.0f, nan}, {nan, 1.0f}, {infinity, 1.0f}, {-infinity, -infinity}, {}}) {
      const auto token = sampler.sample(logits, 17);
      ASSERT_FALSE(token.ok());
      EXPECT_EQ(token.error().kind, ErrorKind::failed);
      EXPECT_NE(token.error().message.find("17"), std::string::npos);
    }
  }
}

TEST(Sampler, OptionsOutsideTheirRangeAreUsageErrors) {
  EXPECT_TRUE(check_sampling({}).ok());
  EXPECT_TRUE(check_sampling({.temperature = 0, .top_k = 5, .top_p = 0.1}).ok());
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const SamplingOptions& options : {SamplingOptions{.temperature = -0.1},
                                         {.temperature = nan},
                                         {.top_k = -1},
                                         {.top_p = 0},
                                         {.top_p = 1.01},
                                         {.top_p = nan}}) {
    ASSERT_FALSE(check_sampling(options).ok());
    EXPECT_EQ(check_sampling(options).error().kind, ErrorKind::usage);
  }
}

}  // namespace
}  // namespace ingot
