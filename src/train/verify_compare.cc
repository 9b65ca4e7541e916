#include "train/verify_compare.h"

#include <algorithm>
#include <cmath>

namespace ingot {
namespace {

double largest_of(std::span<const float> values) {
  double largest = 0;
  for (float x : values)
    if (std::isfinite(x)) largest = std::max(largest, std::abs(static_cast<double>(x)));
  return largest;
}

double limit_of(ReferenceStage stage, double tolerance, double largest) {
  switch (stage) {
    case ReferenceStage::activation:
    case ReferenceStage::step_norms:
      return tolerance * std::max(1.0, largest);
    case ReferenceStage::state_gradient:
    case ReferenceStage::gradient:
      return tolerance * largest;
    case ReferenceStage::loss:
    case ReferenceStage::step_losses:
    case ReferenceStage::parameter_after:
      return tolerance;
  }
  return 0;
}

// NaN where one alone is not finite, and where both are NaN, which compares nothing.
double difference(float expected, float found) {
  if (expected == found) return 0;
  const double delta = std::abs(static_cast<double>(expected) - static_cast<double>(found));
  return std::isfinite(delta) ? delta : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

float gradient_scale(const VerifyOptions& options) {
  return options.precision.dtype == DType::f16 ? 1024.0f : 1.0f;
}

std::vector<float> unscaled(std::span<const float> values, float scale) {
  std::vector<float> result(values.begin(), values.end());
  for (float& value : result) value /= scale;
  return result;
}

std::vector<size_t> rounding_errors(std::span<const float> expected, std::span<const float> found) {
  constexpr double kUnits = 0x1p-21, kAgreement = 1e-3;
  const double noise = kUnits * largest_of(expected);
  std::vector<size_t> entries;
  for (size_t i = 0; i < expected.size(); ++i) {
    const double larger = std::max(std::abs(expected[i]), std::abs(found[i]));
    if (larger <= noise && difference(expected[i], found[i]) > kAgreement * larger) entries.push_back(i);
  }
  return entries;
}

TensorComparison compare(const ReferenceTensor& tensor, std::span<const float> expected, std::span<const float> found,
                         double tolerance, const Undetermined& undetermined) {
  INGOT_CHECK(expected.size() == found.size(), "{}: {} elements against {}", tensor.name, expected.size(),
              found.size());
  TensorComparison c;
  c.name = tensor.name;
  c.shape = tensor.shape;
  const double largest = largest_of(expected);
  c.limit = limit_of(tensor.stage, tolerance, largest);
  auto free = undetermined.entries.begin();
  for (size_t i = 0; i < expected.size(); ++i) {
    const double delta = difference(expected[i], found[i]);
    const bool is_free = free != undetermined.entries.end() && *free == i;
    if (is_free) ++free;
    if (is_free && delta <= undetermined.limit) {
      ++c.undetermined;
      continue;
    }
    if (delta <= c.max_abs && i > 0) continue;
    c.max_abs = delta;
    c.worst = static_cast<int64_t>(i);
    if (std::isnan(delta)) break;
  }
  if (!expected.empty()) {
    c.expected = expected[static_cast<size_t>(c.worst)];
    c.found = found[static_cast<size_t>(c.worst)];
  }
  c.max_rel = largest > 0 ? c.max_abs / largest : c.max_abs;
  c.ok = c.max_abs <= c.limit;
  return c;
}

TensorComparison compare_curve(const ReferenceTensor& tensor, std::span<const float> expected,
                               std::span<const float> found, double tolerance) {
  INGOT_CHECK(expected.size() == found.size(), "{}: {} steps against {}", tensor.name, expected.size(), found.size());
  TensorComparison c;
  c.name = tensor.name;
  c.shape = tensor.shape;
  for (size_t i = 0; i < expected.size(); ++i) {
    const double delta = difference(expected[i], found[i]);
    const double relative = delta == 0 ? 0 : delta / std::abs(static_cast<double>(expected[i]));
    if (relative <= c.max_rel && i > 0) continue;
    c.max_abs = delta;
    c.max_rel = relative;
    c.worst = static_cast<int64_t>(i);
    if (std::isnan(relative)) break;
  }
  c.expected = expected[static_cast<size_t>(c.worst)];
  c.found = found[static_cast<size_t>(c.worst)];
  c.limit = tolerance * std::abs(c.expected);
  c.ok = c.max_rel <= tolerance;
  return c;
}

int64_t first_position(std::span<const float> expected, std::span<const float> found, double limit,
                       const Batch& batch) {
  const size_t rows = batch.positions.size(), width = expected.size() / rows;
  int64_t first = kNone;
  for (size_t row = 0; row < rows; ++row) {
    if (first != kNone && batch.positions[row] >= first) continue;
    for (size_t i = row * width; i < (row + 1) * width; ++i)
      if (!(difference(expected[i], found[i]) <= limit)) {
        first = batch.positions[row];
        break;
      }
  }
  return first;
}

}  // namespace ingot
