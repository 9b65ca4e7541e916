// Clipping of gradients by their L2 norm (Pascanu et al., "On the difficulty of training recurrent neural networks",
// 2013).
#pragma once

#include <span>
#include <vector>

namespace ingot {

struct Clipping {
  double grad_norm = 0;       // over all groups together, before clipping: what metrics.csv shows
  bool finite = true;         // false: the step must be skipped, and every scale is 0
  std::vector<float> scales;  // what each group's gradients are multiplied with, at most 1
};

// sums_of_squares[g]: of all gradients of clip group g over all ranks, each parameter counted once. max_norms[g]: its
// limit, 0 for none. The scale is max_norm / (norm + 1e-6) where that is below 1, as in torch.nn.utils.clip_grad_norm_.
// Both spans have the same size, which may be 0.
Clipping clip_by_norm(std::span<const double> sums_of_squares, std::span<const double> max_norms);

}  // namespace ingot
