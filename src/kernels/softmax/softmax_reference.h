// The scalar reference of softmax and cross-entropy, on float or double.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace ingot::kernels::reference {

template <class T>
T log_sum_exp(const T* x, int64_t n, T scale = 1) {
  T max = -std::numeric_limits<T>::infinity(), sum = 0;
  for (int64_t i = 0; i < n; ++i) max = std::max(max, scale * x[i]);
  if (std::isinf(max)) return max;
  for (int64_t i = 0; i < n; ++i) sum += std::exp(scale * x[i] - max);
  return max + std::log(sum);
}

// Of the elements first <= j <= last; zero elsewhere.
template <class T>
void softmax(const T* x, int64_t n, T scale, int64_t first, int64_t last, T* y) {
  first = std::max<int64_t>(first, 0);
  last = std::min(last, n - 1);
  const T lse = first <= last ? log_sum_exp(x + first, last - first + 1, scale) : T{0};
  for (int64_t i = 0; i < n; ++i) y[i] = i >= first && i <= last ? std::exp(scale * x[i] - lse) : T{0};
}

template <class T>
void softmax_grad(const T* y, const T* dy, int64_t n, T scale, T* dx) {
  T dot = 0;
  for (int64_t i = 0; i < n; ++i) dot += y[i] * dy[i];
  for (int64_t i = 0; i < n; ++i) dx[i] = scale * y[i] * (dy[i] - dot);
}

// Returns the loss; the gradient may be null.
template <class T>
T cross_entropy(const T* logits, int64_t n, int64_t target, T scale, T* grad) {
  const T lse = log_sum_exp(logits, n);
  for (int64_t i = 0; grad != nullptr && i < n; ++i) {
    grad[i] = scale * (std::exp(logits[i] - lse) - (i == target ? T{1} : T{0}));
  }
  return lse - logits[target];
}

}  // namespace ingot::kernels::reference
