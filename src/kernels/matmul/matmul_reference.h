// The matrix product as two plain loops around a sum in T (float or double): what every other path is tested against.
#pragma once

#include <cstdint>

#include "kernels/matmul/matmul.h"

namespace ingot::kernels {

// Strides of shape must be given (not 0). B is never packed here.
template <class T>
void matmul_reference(const MatmulShape& s, const T* a, const T* b, T* c) {
  for (int64_t batch = 0; batch < s.batch; ++batch) {
    for (int64_t i = 0; i < s.rows; ++i) {
      for (int64_t j = 0; j < s.n; ++j) {
        T* out = c + batch * s.batch_stride_c + i * s.ldc + j;
        T sum = s.accumulate ? *out : T{0};
        for (int64_t p = 0; p < s.k; ++p) {
          const T left = a[batch * s.batch_stride_a + (s.transpose_a ? p * s.lda + i : i * s.lda + p)];
          const T right = b[batch * s.batch_stride_b + (s.transpose_b ? j * s.ldb + p : p * s.ldb + j)];
          sum += left * right;
        }
        *out = sum;
      }
    }
  }
}

}  // namespace ingot::kernels
