#include "optim/clipping.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace ingot {

Clipping clip_by_norm(std::span<const double> sums_of_squares, std::span<const double> max_norms) {
  INGOT_CHECK(sums_of_squares.size() == max_norms.size(), "{} sums of squares for {} limits", sums_of_squares.size(),
              max_norms.size());
  Clipping clipping;
  double total = 0;
  for (double sum : sums_of_squares) total += sum;
  clipping.grad_norm = std::sqrt(total);
  clipping.finite = std::isfinite(clipping.grad_norm);
  clipping.scales.assign(sums_of_squares.size(), clipping.finite ? 1.0f : 0.0f);
  if (!clipping.finite) return clipping;
  for (size_t g = 0; g < max_norms.size(); ++g)
    if (max_norms[g] > 0)
      clipping.scales[g] = static_cast<float>(std::min(1.0, max_norms[g] / (std::sqrt(sums_of_squares[g]) + 1e-6)));
  return clipping;
}

}  // namespace ingot
