// The scalar reference of reductions, on float or double.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace ingot::kernels::reference {

template <class T>
T sum(const T* x, int64_t n) {
  T total = 0;
  for (int64_t i = 0; i < n; ++i) total += x[i];
  return total;
}
template <class T>
T sum_squares(const T* x, int64_t n) {
  T total = 0;
  for (int64_t i = 0; i < n; ++i) total += x[i] * x[i];
  return total;
}
template <class T>
T max_abs(const T* x, int64_t n) {
  T largest = 0;
  for (int64_t i = 0; i < n; ++i) largest = std::max(largest, std::abs(x[i]));
  return largest;
}
template <class T>
void column_sums(const T* x, int64_t stride, int64_t columns, int64_t row_begin, int64_t row_end, T* out) {
  std::fill_n(out, columns, T{0});
  for (int64_t r = row_begin; r < row_end; ++r) {
    for (int64_t c = 0; c < columns; ++c) out[c] += x[r * stride + c];
  }
}

}  // namespace ingot::kernels::reference
