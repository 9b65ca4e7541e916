// In which order sequences are drawn: a pure function of the number of the draw, so that a run continues anywhere.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"

namespace ingot {

// A pseudo-random permutation of [0, count): a Feistel network over the next power of four, walked until it lands
// inside (Black and Rogaway, "Ciphers with Arbitrary Finite Domains", CT-RSA 2002). Constant memory.
class Permutation {
 public:
  Permutation(uint64_t count, uint64_t key);
  uint64_t operator()(uint64_t index) const;

 private:
  uint64_t encipher(uint64_t value) const;
  uint64_t count_;
  uint64_t key_;
  int half_bits_;  // of the two halves of a value
};

// A sequence of a source.
struct Sample {
  int64_t source = 0;
  int64_t index = 0;
  bool operator==(const Sample&) const = default;
};

// Draws 0, 1, 2, … without end. An epoch is as many draws as there are sequences.
//
// Without weights an epoch draws every sequence of every source once. With weights, source i has the share
// weights[i] / sum(weights) of the draws (to within 1 / 65536), spread evenly, and goes through its own sequences again
// and again, each time in a new order. Without shuffle sequences come in their own order (and the sources one after the
// other, or interleaved by weight).
class SampleOrder {
 public:
  // `weights` is empty or has one entry a source. ErrorKind::usage for a weight that is not positive and finite.
  static Result<SampleOrder> create(std::span<const int64_t> counts, std::span<const double> weights, uint64_t seed,
                                    bool shuffle);

  Sample at(int64_t draw) const;
  int64_t epoch_size() const { return epoch_size_; }

 private:
  uint64_t shuffled(int64_t source, int64_t epoch, int64_t index, int64_t count) const;
  void interleave(std::span<const double> weights);

  std::vector<int64_t> counts_, ends_;  // of each source; ends_: of it and those before
  int64_t epoch_size_ = 0;
  uint64_t seed_ = 0;
  bool shuffle_ = true;
  // With weights: the sources of one cycle of draws, and how many draws of the same source went before in the cycle.
  std::vector<uint32_t> cycle_source_, cycle_rank_;
  std::vector<int64_t> cycle_draws_;  // of each source
};

}  // namespace ingot
