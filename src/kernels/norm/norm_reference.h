// The scalar reference of the norms and their gradients, on float or double. Rows are dense.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

namespace ingot::kernels::reference {

template <class T>
struct NormRow {
  T mean = 0, rstd = 0;
};

template <class T>
NormRow<T> norm_statistics(const T* x, int64_t n, T eps, bool centered) {
  NormRow<T> row;
  T squares = 0;
  for (int64_t i = 0; centered && i < n; ++i) row.mean += x[i] / static_cast<T>(n);
  for (int64_t i = 0; i < n; ++i) squares += (x[i] - row.mean) * (x[i] - row.mean);
  row.rstd = 1 / std::sqrt(squares / static_cast<T>(n) + eps);
  return row;
}

// weight and bias may be null.
template <class T>
NormRow<T> norm(const T* x, const T* weight, const T* bias, int64_t n, T eps, bool centered, T* y) {
  const NormRow<T> row = norm_statistics(x, n, eps, centered);
  for (int64_t i = 0; i < n; ++i) {
    y[i] = (x[i] - row.mean) * row.rstd * (weight ? weight[i] : T{1}) + (bias ? bias[i] : T{0});
  }
  return row;
}

// Adds to d_weight and d_bias.
template <class T>
void norm_grad(const T* x, const T* dy, const T* weight, int64_t n, T eps, bool centered, T* dx, T* d_weight,
               T* d_bias) {
  const NormRow<T> row = norm_statistics(x, n, eps, centered);
  T mean_g = 0, mean_gx = 0;
  for (int64_t i = 0; i < n; ++i) {
    const T normal = (x[i] - row.mean) * row.rstd, g = dy[i] * (weight ? weight[i] : T{1});
    mean_g += centered ? g / static_cast<T>(n) : T{0};
    mean_gx += g * normal / static_cast<T>(n);
    d_weight[i] += dy[i] * normal;
    d_bias[i] += dy[i];
  }
  for (int64_t i = 0; i < n; ++i) {
    const T normal = (x[i] - row.mean) * row.rstd, g = dy[i] * (weight ? weight[i] : T{1});
    dx[i] = row.rstd * (g - mean_g - normal * mean_gx);
  }
}

}  // namespace ingot::kernels::reference
