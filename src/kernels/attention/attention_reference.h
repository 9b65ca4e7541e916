// Causal attention and its gradient as plain loops in T (float or double), one row of probabilities at a time: what
// every other path is tested against. Shapes, masks and dropout are those of attention.h; strides must be given (not
// 0).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <vector>

#include "base/rng.h"
#include "kernels/attention/attention.h"

namespace ingot::kernels {

template <class T>
struct AttentionRow {
  int64_t first = 0, end = 0;                                    // the keys seen, none where first >= end
  std::vector<T> weights;                                        // softmax, [end - first]
  std::vector<T> slopes;                                         // of the soft cap, 1 without one
  std::vector<T> factors;                                        // what dropout multiplies each by
  T maximum = -std::numeric_limits<T>::infinity(), log_sum = 0;  // of the scores, as attention.h has them
};

template <class T>
AttentionRow<T> attention_row_reference(const AttentionShape& s, int64_t b, int64_t h, int64_t i, const T* q,
                                        const T* k, const int32_t* segment_start, AttentionDropout dropout) {
  AttentionRow<T> row;
  row.end = i + 1;
  if (segment_start != nullptr) row.first = std::max<int64_t>(0, segment_start[b * s.tokens + i]);
  if (s.window > 0) row.first = std::max(row.first, i - s.window + 1);
  if (row.first >= row.end) return row;
  const int64_t kv_head = h / (s.heads / s.kv_heads);
  const T* query = q + (b * s.tokens + i) * s.q_row_stride + h * s.head_dim;
  T highest = -std::numeric_limits<T>::infinity(), total = 0;
  for (int64_t j = row.first; j < row.end; ++j) {
    const T* key = k + (b * s.tokens + j) * s.k_row_stride + kv_head * s.head_dim;
    T score = 0;
    for (int64_t c = 0; c < s.head_dim; ++c) score += query[c] * key[c];
    const T cap = static_cast<T>(s.softcap), scaled = score * static_cast<T>(s.scale);
    const T t = cap > 0 ? std::tanh(scaled / cap) : T{0};
    row.weights.push_back(cap > 0 ? cap * t : scaled);
    row.slopes.push_back(1 - t * t);
    highest = std::max(highest, row.weights.back());
  }
  for (T& weight : row.weights) total += weight = std::exp(weight - highest);
  for (int64_t j = row.first; j < row.end; ++j) {
    row.weights[static_cast<size_t>(j - row.first)] /= total;
    const auto e = static_cast<uint64_t>((((b + dropout.first_batch) * s.heads + h) * s.tokens + i) * s.tokens + j);
    const bool kept = uniform_from_bits(philox(dropout.key, e / 4, dropout.counter)[e % 4]) >= s.dropout_p;
    row.factors.push_back(s.dropout_p == 0 ? T{1} : kept ? T{1} / (T{1} - static_cast<T>(s.dropout_p)) : T{0});
  }
  row.maximum = highest / std::log(T{2});
  row.log_sum = std::log2(total);
  return row;
}

template <class T>
void attention_reference(const AttentionShape& s, const T* q, const T* k, const T* v, const int32_t* segment_start,
                         AttentionDropout dropout, T* out, T* lse) {
  const int64_t dim = s.head_dim;
  for (int64_t b = 0; b < s.batch; ++b)
    for (int64_t h = 0; h < s.heads; ++h)
      for (int64_t i = 0; i < s.tokens; ++i) {
        const AttentionRow<T> row = attention_row_reference(s, b, h, i, q, k, segment_start, dropout);
        T* to = out + (b * s.tokens + i) * s.out_row_stride + h * dim;
        std::fill_n(to, dim, T{0});
        for (int64_t j = row.first; j < row.end; ++j) {
          const auto at = static_cast<size_t>(j - row.first);
          const T* value = v + (b * s.tokens + j) * s.v_row_stride + h / (s.heads / s.kv_heads) * dim;
          for (int64_t c = 0; c < dim; ++c) to[c] += row.weights[at] * row.factors[at] * value[c];
        }
        T* row_lse = lse + 2 * ((b * s.heads + h) * s.tokens + i);
        row_lse[0] = row.maximum;
        row_lse[1] = row.log_sum;
      }
}

// dq, dk and dv must be zero on entry. `out` is what forward stored, for gradients from an output that was rounded;
// null: the exact one. part_of(term) is what of each term the sums of dq, dk and dv have: the term itself, or its
// magnitude for bounds of their errors.
template <class T, class PartOf = std::identity>
void attention_gradient_reference(const AttentionShape& s, const T* q, const T* k, const T* v,
                                  const int32_t* segment_start, AttentionDropout dropout, const T* out, const T* dout,
                                  T* dq, T* dk, T* dv, PartOf part_of = {}) {
  const int64_t dim = s.head_dim;
  for (int64_t b = 0; b < s.batch; ++b)
    for (int64_t h = 0; h < s.heads; ++h)
      for (int64_t i = 0; i < s.tokens; ++i) {
        const AttentionRow<T> row = attention_row_reference(s, b, h, i, q, k, segment_start, dropout);
        const int64_t kv_head = h / (s.heads / s.kv_heads);
        const int64_t out_at = (b * s.tokens + i) * s.out_row_stride + h * dim;
        const T* grad = dout + out_at;
        std::vector<T> dweights;
        T mean = 0;
        for (int64_t j = row.first; j < row.end; ++j) {
          const auto at = static_cast<size_t>(j - row.first);
          const int64_t offset = (b * s.tokens + j) * s.v_row_stride + kv_head * dim;
          T dweight = 0;
          for (int64_t c = 0; c < dim; ++c) {
            dweight += grad[c] * v[offset + c];
            dv[offset + c] += part_of(row.weights[at] * row.factors[at] * grad[c]);
          }
          dweights.push_back(dweight * row.factors[at]);
          mean += dweights.back() * row.weights[at];
        }
        if (out != nullptr) mean = std::inner_product(grad, grad + dim, out + out_at, T{0});
        for (int64_t j = row.first; j < row.end; ++j) {
          const auto at = static_cast<size_t>(j - row.first);
          const T dscore = row.slopes[at] * row.weights[at] * (dweights[at] - mean) * static_cast<T>(s.scale);
          const int64_t q_at = (b * s.tokens + i) * s.q_row_stride + h * dim;
          const int64_t k_at = (b * s.tokens + j) * s.k_row_stride + kv_head * dim;
          for (int64_t c = 0; c < dim; ++c) {
            dq[q_at + c] += part_of(dscore * k[k_at + c]);
            dk[k_at + c] += part_of(dscore * q[q_at + c]);
          }
        }
      }
}

}  // namespace ingot::kernels
