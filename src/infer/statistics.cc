#include "infer/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"

namespace ingot {
namespace {

constexpr double kNotKnown = std::numeric_limits<double>::quiet_NaN();

}  // namespace

Mean mean_of(std::span<const double> values) {
  const auto n = static_cast<double>(values.size());
  if (values.empty()) return {kNotKnown, kNotKnown, 0};
  double sum = 0, squares = 0;
  for (const double value : values) sum += value;
  const double mean = sum / n;
  for (const double value : values) squares += (value - mean) * (value - mean);
  const double error = values.size() < 2 ? kNotKnown : std::sqrt(squares / (n - 1) / n);
  return {mean, error, static_cast<int64_t>(values.size())};
}

Mean mean_of_means(std::span<const Mean> means) {
  if (means.empty()) return {kNotKnown, kNotKnown, 0};
  Mean result;
  double squares = 0;
  for (const Mean& part : means) {
    result.mean += part.mean;
    result.n += part.n;
    squares += part.standard_error * part.standard_error;
  }
  const auto count = static_cast<double>(means.size());
  result.mean /= count;
  result.standard_error = std::sqrt(squares) / count;
  return result;
}

Mean paired_difference(std::span<const double> a, std::span<const double> b) {
  INGOT_CHECK(a.size() == b.size(), "{} values beside {}", a.size(), b.size());
  std::vector<double> differences;
  for (size_t i = 0; i < a.size(); ++i) differences.push_back(b[i] - a[i]);
  return mean_of(differences);
}

size_t index_of_greatest(std::span<const double> values) {
  INGOT_CHECK(!values.empty(), "the greatest of no values");
  return static_cast<size_t>(std::ranges::max_element(values) - values.begin());
}

}  // namespace ingot
