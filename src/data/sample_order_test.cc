// The order of samples.
#include "data/sample_order.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "data/testing.h"

namespace ingot {
namespace {

TEST(Permutation, EveryNumberComesOnce) {
  for (uint64_t count : {1, 2, 3, 4, 5, 7, 16, 17, 100, 1000, 4097}) {
    const Permutation permutation(count, 7);
    std::set<uint64_t> seen;
    for (uint64_t i = 0; i < count; ++i) seen.insert(permutation(i));
    EXPECT_EQ(seen.size(), count);
    EXPECT_LT(*seen.rbegin(), count);
  }
}

TEST(Permutation, HugeOnesTakeNoMemory) {
  const uint64_t count = (uint64_t{1} << 45) + 12345;
  const Permutation permutation(count, 3);
  std::set<uint64_t> seen;
  for (uint64_t i = 0; i < 1000; ++i) seen.insert(permutation(count - 1 - i));
  EXPECT_EQ(seen.size(), 1000u);
  EXPECT_LT(*seen.rbegin(), count);
  EXPECT_GT(*seen.rbegin(), count / 10 * 9);
}

TEST(Permutation, OrdersOfAFewAreAllReached) {
  std::map<std::vector<uint64_t>, int> orders;
  for (uint64_t key = 0; key < 6000; ++key) {
    const Permutation permutation(3, key);
    ++orders[{permutation(0), permutation(1), permutation(2)}];
  }
  ASSERT_EQ(orders.size(), 6u);
  for (const auto& [order, times] : orders) EXPECT_NEAR(times, 1000, 300);  // a network this small is not quite even
}

// How far a shuffled order is from the identity: the correlation of index and value.
TEST(Permutation, NeighboursDoNotStayTogether) {
  const uint64_t count = 10000;
  const Permutation permutation(count, 11);
  double correlation = 0, steps = 0;
  for (uint64_t i = 0; i + 1 < count; ++i) {
    const double a = static_cast<double>(permutation(i)), b = static_cast<double>(permutation(i + 1));
    correlation += (a - 5000) * (static_cast<double>(i) - 5000);
    steps += std::abs(a - b);
  }
  EXPECT_LT(std::abs(correlation) / (count * 5000.0 * 5000.0 / 3), 0.05);
  EXPECT_NEAR(steps / count, count / 3.0, count / 30.0);  // the mean distance of two uniform numbers
}

std::vector<Sample> draws(const SampleOrder& order, int64_t begin, int64_t end) {
  std::vector<Sample> out;
  for (int64_t i = begin; i < end; ++i) out.push_back(order.at(i));
  return out;
}

SampleOrder order_of(std::vector<int64_t> counts, std::vector<double> weights = {}, uint64_t seed = 1,
                     bool shuffle = true) {
  return SampleOrder::create(counts, weights, seed, shuffle).value();
}

TEST(Order, AnEpochDrawsEverySequenceOnceAndEachEpochInItsOwnOrder) {
  const SampleOrder order = order_of({30, 5, 20});
  ASSERT_EQ(order.epoch_size(), 55);
  std::set<std::vector<std::pair<int64_t, int64_t>>> orders;
  for (int64_t epoch = 0; epoch < 4; ++epoch) {
    std::vector<std::pair<int64_t, int64_t>> drawn;
    for (const Sample& sample : draws(order, epoch * 55, epoch * 55 + 55))
      drawn.emplace_back(sample.source, sample.index);
    orders.insert(drawn);
    std::sort(drawn.begin(), drawn.end());
    EXPECT_EQ(std::unique(drawn.begin(), drawn.end()), drawn.end());
    EXPECT_EQ(drawn.back(), (std::pair<int64_t, int64_t>{2, 19}));
  }
  EXPECT_EQ(orders.size(), 4u);
}

TEST(Order, TheSeedDecides) {
  EXPECT_EQ(draws(order_of({100}, {}, 5), 0, 100), draws(order_of({100}, {}, 5), 0, 100));
  EXPECT_NE(draws(order_of({100}, {}, 5), 0, 100), draws(order_of({100}, {}, 6), 0, 100));
}

TEST(Order, WithoutShuffleSequencesComeInTheirOwnOrder) {
  const SampleOrder order = order_of({2, 3}, {}, 1, false);
  EXPECT_EQ(draws(order, 0, 6), (std::vector<Sample>{{0, 0}, {0, 1}, {1, 0}, {1, 1}, {1, 2}, {0, 0}}));
}

TEST(Order, WeightsAreSharesAtEveryMoment) {
  const std::vector<double> weights{7, 2, 1};
  const SampleOrder order = order_of({1000, 50, 9}, weights);
  std::vector<int64_t> drawn(3);
  for (int64_t i = 0; i < 200000; ++i) {
    ++drawn[static_cast<size_t>(order.at(i).source)];
    for (size_t source = 0; source < 3; ++source)
      ASSERT_NEAR(static_cast<double>(drawn[source]), static_cast<double>(i + 1) * weights[source] / 10, 5) << i;
  }
}

TEST(Order, AWeightedSourceGoesThroughItsSequencesAgainAndAgain) {
  const SampleOrder order = order_of({1000, 7}, {1, 1});
  std::map<int64_t, int> times;
  std::set<std::vector<int64_t>> orders;
  std::vector<int64_t> round;
  for (int64_t i = 0; i < 140000; ++i) {  // across the edge of a cycle
    const Sample sample = order.at(i);
    if (sample.source == 0) continue;
    ++times[sample.index];
    round.push_back(sample.index);
    if (round.size() < 7) continue;
    orders.insert(round);
    std::sort(round.begin(), round.end());
    ASSERT_EQ(round, (std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6}));
    round.clear();
  }
  for (const auto& [index, count] : times) EXPECT_EQ(count, 10000);
  EXPECT_GT(orders.size(), 1000u);
}

TEST(Order, ATinyWeightStillGetsItsTurn) {
  const SampleOrder order = order_of({10, 10, 10}, {1, 1e-9, 1});
  int64_t drawn = 0;
  for (int64_t i = 0; i < 65536; ++i) drawn += order.at(i).source == 1;
  EXPECT_EQ(drawn, 1);
}

TEST(Order, AWeightThatIsNotPositiveIsAUsageError) {
  for (double weight : std::vector<double>{0.0, -1.0, std::nan(""), INFINITY}) {
    const std::vector<int64_t> counts{1, 1};
    const std::vector<double> weights{1, weight};
    EXPECT_ERROR(SampleOrder::create(counts, weights, 1, true), ErrorKind::usage, "weight");
  }
}

}  // namespace
}  // namespace ingot
