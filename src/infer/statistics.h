// Means with their standard errors.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace ingot {

struct Mean {
  double mean = 0;
  double standard_error = 0;  // NaN where it is not known: of fewer than two values
  int64_t n = 0;              // values
};

// Of independent values x: standard error = s / sqrt(n), s² = sum (x - mean)² / (n - 1). Of none: NaN.
Mean mean_of(std::span<const double> values);

// The mean of k means, each counted once: standard error = sqrt(sum of theirs squared) / k. n is the sum of theirs.
Mean mean_of_means(std::span<const Mean> means);

// b - a of the same questions, pair by pair: what both find hard does not count as a difference.
Mean paired_difference(std::span<const double> a, std::span<const double> b);

// The greatest value's index, of equals the first.
size_t index_of_greatest(std::span<const double> values);

}  // namespace ingot
