#include "infer/sampler.h"

#include <algorithm>
#include <cmath>

#include "base/rng.h"

namespace ingot {
namespace {

// 53 bits: every double in [0, 1) of that spacing.
double uniform_at(uint64_t key, int64_t position) {
  const PhiloxBlock block = philox(key, static_cast<uint64_t>(position));
  return static_cast<double>(((uint64_t{block[1]} << 32) | block[0]) >> 11) * 0x1p-53;
}

constexpr auto kMoreProbable = [](const auto& a, const auto& b) {
  return a.weight != b.weight ? a.weight > b.weight : a.id < b.id;
};
constexpr auto kLessProbable = [](const auto& a, const auto& b) { return kMoreProbable(b, a); };

}  // namespace

Status check_sampling(const SamplingOptions& options) {
  if (!std::isfinite(options.temperature) || options.temperature < 0)
    return usage_error("a temperature of {}; expected a number from 0 (the most probable token) on",
                       options.temperature);
  if (options.top_k < 0) return usage_error("top-k is {}; expected 0 (no limit) or a number of tokens", options.top_k);
  if (!(options.top_p > 0 && options.top_p <= 1))
    return usage_error("top-p is {}; expected a probability above 0 and up to 1 (no limit)", options.top_p);
  return {};
}

Sampler::Sampler(const SamplingOptions& options) : options_(options), key_(stream_key(options.seed, "generate")) {}

Result<int32_t> Sampler::sample(std::span<const float> logits, int64_t position) {
  const auto best = std::ranges::max_element(logits);
  if (std::ranges::any_of(logits, [](float x) { return std::isnan(x); }) || logits.empty() || !std::isfinite(*best))
    return failed_error("the logits of position {} are not finite: the weights are damaged, or training diverged",
                        position);
  const auto best_id = static_cast<int32_t>(best - logits.begin());
  if (options_.temperature == 0) return best_id;
  candidates_.clear();
  for (size_t i = 0; i < logits.size(); ++i) {
    const double weight =
        std::exp((static_cast<double>(logits[i]) - static_cast<double>(*best)) / options_.temperature);
    if (weight > 0) candidates_.push_back({weight, static_cast<int32_t>(i)});
  }
  keep_top_k();
  keep_top_p();
  double total = 0;
  for (const Candidate& candidate : candidates_) total += candidate.weight;
  double left = uniform_at(key_, position) * total;
  for (const Candidate& candidate : candidates_)
    if ((left -= candidate.weight) < 0) return candidate.id;
  return candidates_.back().id;  // rounding
}

void Sampler::keep_top_k() {
  const auto k = static_cast<size_t>(options_.top_k);
  if (k == 0 || k >= candidates_.size()) return;
  std::ranges::nth_element(candidates_, candidates_.begin() + static_cast<std::ptrdiff_t>(k), kMoreProbable);
  candidates_.resize(k);
  std::ranges::sort(candidates_, kMoreProbable);  // the order that nth_element leaves is the library's own
}

// The most probable go to the back of a heap one by one: few are needed of a large vocabulary.
void Sampler::keep_top_p() {
  if (options_.top_p >= 1) return;
  double total = 0, reached = 0;
  for (const Candidate& candidate : candidates_) total += candidate.weight;
  std::ranges::make_heap(candidates_, kLessProbable);
  auto end = candidates_.end();
  while (end != candidates_.begin() && reached < options_.top_p * total) {
    std::ranges::pop_heap(candidates_.begin(), end, kLessProbable);
    reached += (--end)->weight;
  }
  candidates_.erase(candidates_.begin(), end);
}

}  // namespace ingot
