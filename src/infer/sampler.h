// Sampler: the next token from logits. In this order, as Hugging Face's generate does: logits / temperature, the top_k
// largest, the smallest set of the most probable whose probabilities reach top_p (Holtzman et al. 2020,
// arXiv:1904.09751), one of them by its probability.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"

namespace ingot {

struct SamplingOptions {
  double temperature = 1.0;  // 0: the most probable token, of equals the one with the smallest id
  int64_t top_k = 0;         // 0: no limit
  double top_p = 1.0;        // 1: no limit
  uint64_t seed = 0;
};

// What is outside its range: usage error.
Status check_sampling(const SamplingOptions& options);

// One thread at a time.
class Sampler {
 public:
  explicit Sampler(const SamplingOptions& options);

  // The token at `position` of its sequence. Depends on logits, options and position alone: random numbers are counted
  // by position. Error (failed): logits with a NaN, or without a finite one.
  Result<int32_t> sample(std::span<const float> logits, int64_t position);

 private:
  struct Candidate {
    double weight;  // proportional to its probability
    int32_t id;
  };
  void keep_top_k();
  void keep_top_p();

  SamplingOptions options_;
  uint64_t key_;
  std::vector<Candidate> candidates_;
};

}  // namespace ingot
