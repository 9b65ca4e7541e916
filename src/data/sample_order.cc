#include "data/sample_order.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "base/check.h"
#include "base/rng.h"

namespace ingot {
namespace {

constexpr int64_t kCycle = 65536;
constexpr int kRounds = 6;

}  // namespace

Permutation::Permutation(uint64_t count, uint64_t key)
    : count_(count), key_(key), half_bits_(std::max(1, static_cast<int>(std::bit_width(count - 1) + 1) / 2)) {
  INGOT_CHECK(count > 0 && count <= uint64_t{1} << 62, "a permutation of {} numbers", count);
}

uint64_t Permutation::encipher(uint64_t value) const {
  const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
  uint64_t left = value >> half_bits_, right = value & mask;
  for (uint64_t round = 0; round < kRounds; ++round) {
    const uint64_t mixed = left ^ (philox(key_, right, round)[0] & mask);
    left = right;
    right = mixed;
  }
  return (left << half_bits_) | right;
}

uint64_t Permutation::operator()(uint64_t index) const {
  INGOT_CHECK(index < count_, "number {} of a permutation of {}", index, count_);
  do index = encipher(index);
  while (index >= count_);
  return index;
}

Result<SampleOrder> SampleOrder::create(std::span<const int64_t> counts, std::span<const double> weights, uint64_t seed,
                                        bool shuffle) {
  SampleOrder order;
  order.counts_.assign(counts.begin(), counts.end());
  for (int64_t count : counts) {
    INGOT_CHECK(count > 0, "a source of {} sequences", count);
    order.ends_.push_back(order.epoch_size_ += count);
  }
  INGOT_CHECK(order.epoch_size_ > 0, "no source to draw from");
  order.seed_ = seed;
  order.shuffle_ = shuffle;
  if (weights.empty()) return order;
  INGOT_CHECK(weights.size() == counts.size(), "{} weights for {} sources", weights.size(), counts.size());
  for (double weight : weights)
    if (!(weight > 0 && std::isfinite(weight)))
      return usage_error("a data source has the weight {}; expected a positive number", weight);
  if (weights.size() > kCycle / 2)
    return usage_error("{} weighted data sources; at most {} are supported", weights.size(), kCycle / 2);
  if (weights.size() > 1) order.interleave(weights);
  return order;
}

// At every draw the source that is furthest behind its share goes next ("smooth weighted round robin"). The shares are
// whole numbers of draws a cycle, so the cycle ends as it began.
void SampleOrder::interleave(std::span<const double> weights) {
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  const size_t sources = weights.size();
  int64_t left = kCycle;
  std::vector<std::pair<double, size_t>> remainders;
  for (size_t i = 0; i < sources; ++i) {
    const double exact = weights[i] / sum * kCycle;
    cycle_draws_.push_back(std::max<int64_t>(1, static_cast<int64_t>(exact)));
    remainders.emplace_back(static_cast<double>(cycle_draws_.back()) - exact, i);
    left -= cycle_draws_.back();
  }
  std::sort(remainders.begin(), remainders.end());  // those furthest below their share first
  for (size_t k = 0; left > 0; ++k, --left) ++cycle_draws_[remainders[k % sources].second];
  for (; left < 0; ++left) --*std::max_element(cycle_draws_.begin(), cycle_draws_.end());
  std::vector<int64_t> credit(sources);
  std::vector<uint32_t> drawn(sources);
  for (int64_t draw = 0; draw < kCycle; ++draw) {
    for (size_t i = 0; i < sources; ++i) credit[i] += cycle_draws_[i];
    const auto next = static_cast<size_t>(std::max_element(credit.begin(), credit.end()) - credit.begin());
    credit[next] -= kCycle;
    cycle_source_.push_back(static_cast<uint32_t>(next));
    cycle_rank_.push_back(drawn[next]++);
  }
}

uint64_t SampleOrder::shuffled(int64_t source, int64_t epoch, int64_t index, int64_t count) const {
  if (!shuffle_) return static_cast<uint64_t>(index);
  const PhiloxBlock bits =
      philox(stream_key(seed_, "data.shuffle"), static_cast<uint64_t>(epoch), static_cast<uint64_t>(source));
  return Permutation(static_cast<uint64_t>(count), (uint64_t{bits[0]} << 32) | bits[1])(static_cast<uint64_t>(index));
}

Sample SampleOrder::at(int64_t draw) const {
  INGOT_CHECK(draw >= 0, "draw {}", draw);
  if (!cycle_source_.empty()) {
    const auto at = static_cast<size_t>(draw % kCycle);
    const auto source = static_cast<int64_t>(cycle_source_[at]);
    const int64_t count = counts_[cycle_source_[at]];
    const int64_t own = draw / kCycle * cycle_draws_[cycle_source_[at]] + cycle_rank_[at];
    return {source, static_cast<int64_t>(shuffled(source, own / count, own % count, count))};
  }
  const auto number = static_cast<int64_t>(shuffled(0, draw / epoch_size_, draw % epoch_size_, epoch_size_));
  const int64_t source = std::upper_bound(ends_.begin(), ends_.end(), number) - ends_.begin();
  return {source, number - (source == 0 ? 0 : ends_[static_cast<size_t>(source) - 1])};
}

}  // namespace ingot
