// How one tensor is held against its reference. Internal to train/.
#pragma once

#include <span>
#include <vector>

#include "train/verify.h"

namespace ingot {

// How many times too large gradients are computed: fp16 would lose small ones (optim/loss_scale.h). 1 otherwise.
float gradient_scale(const VerifyOptions& options);
std::vector<float> unscaled(std::span<const float> values, float scale);

// Entries of a parameter that rounding errors move, in rising order, and by how much they may differ.
struct Undetermined {
  std::vector<size_t> entries;
  double limit = 0;
};

// Entries of a gradient that are rounding errors of sums that cancel. A key projection's bias without rotary positions
// has such a gradient: it shifts all scores of a query alike, so the true gradient is zero. What both sides have is
// below a few units in the last place of the tensor's largest entry, and they do not agree on it as they do on small
// gradients that are none the less real.
std::vector<size_t> rounding_errors(std::span<const float> expected, std::span<const float> found);

// `expected` and `found` have the tensor's elements.
TensorComparison compare(const ReferenceTensor& tensor, std::span<const float> expected, std::span<const float> found,
                         double tolerance, const Undetermined& undetermined = {});

// Losses step by step, each within `tolerance` of itself; `worst` is the step with the largest relative difference,
// which max_rel has.
TensorComparison compare_curve(const ReferenceTensor& tensor, std::span<const float> expected,
                               std::span<const float> found, double tolerance);

// The least position within its document at which a row of an activation [B,T,…] is beyond the limit; kNone: none.
int64_t first_position(std::span<const float> expected, std::span<const float> found, double limit, const Batch& batch);

}  // namespace ingot
