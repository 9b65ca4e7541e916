// The scalar reference of embedding and its gradient, on float or double, for a whole table.
#pragma once

#include <cstdint>

namespace ingot::kernels::reference {

template <class T>
void embedding(const T* table, const int32_t* ids, int64_t n, int64_t width, T* out) {
  for (int64_t i = 0; i < n * width; ++i) out[i] = table[ids[i / width] * width + i % width];
}

// Adds to d_table.
template <class T>
void embedding_grad(const int32_t* ids, int64_t n, const T* dy, int64_t width, T* d_table) {
  for (int64_t i = 0; i < n * width; ++i) d_table[ids[i / width] * width + i % width] += dy[i];
}

}  // namespace ingot::kernels::reference
