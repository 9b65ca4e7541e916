// The scalar reference of Adafactor, on float or double: a whole matrix, or a vector, at once.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

namespace ingot::kernels::reference {

// Row and column sums of (grad * scale)^2, [rows] and [columns].
template <class T>
void adafactor_squares(const std::vector<T>& grad, double scale, int64_t rows, int64_t columns,
                       std::vector<T>& row_sums, std::vector<T>& column_sums) {
  row_sums.assign(static_cast<size_t>(rows), T{0});
  column_sums.assign(static_cast<size_t>(columns), T{0});
  for (size_t r = 0; r < row_sums.size(); ++r)
    for (size_t c = 0; c < column_sums.size(); ++c) {
      const T g = grad[r * column_sums.size() + c] * static_cast<T>(scale);
      row_sums[r] += g * g;
      column_sums[c] += g * g;
    }
}

// grad * scale * row_factors[r] * column_factors[c].
template <class T>
std::vector<T> adafactor_update(const std::vector<T>& grad, double scale, const std::vector<T>& row_factors,
                                const std::vector<T>& column_factors) {
  std::vector<T> u;
  for (size_t r = 0; r < row_factors.size(); ++r)
    for (size_t c = 0; c < column_factors.size(); ++c)
      u.push_back(grad[r * column_factors.size() + c] * static_cast<T>(scale) * row_factors[r] * column_factors[c]);
  return u;
}

// v' and, as the result, u.
template <class T>
T adafactor_vector(T grad, double scale, double beta2, double eps, T& v) {
  const T g = grad * static_cast<T>(scale);
  v = static_cast<T>(beta2) * v + static_cast<T>(1 - beta2) * (g * g + static_cast<T>(eps));
  return g / std::sqrt(v);
}

}  // namespace ingot::kernels::reference
