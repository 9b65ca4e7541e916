// The vector code of one tile of a matrix product and of packing; matmul.h has the plan around it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/matmul/panels.h"

namespace ingot::kernels {

// C[rows, columns] (+)= A[rows, k] * B[k, columns], in f32. The pointers are at the tile's own first row and column.
struct MatmulTile {
  int64_t rows = 0, columns = 0, k = 0;
  const float* a = nullptr;  // [rows, k] at a[i * lda + p], transposed at a[p * lda + i]
  int64_t lda = 0;
  bool transpose_a = false;
  const float* b = nullptr;  // [k, columns] likewise, or the tile's first panel (panels.h)
  int64_t ldb = 0;
  bool transpose_b = false, packed_b = false;
  float* c = nullptr;
  int64_t ldc = 0;
  bool accumulate = false;
};

// Tiles of at most so many rows read B as it lies in memory: packing would cost more than the product.
inline constexpr int64_t kFewRows = 4;

size_t matmul_tile_scratch_bytes(int64_t rows);
void run_matmul_tile(const MatmulTile& tile, float* scratch);

// to[0, n) (+)= the sum of `parts` rows of n, `stride` apart.
void sum_parts(int64_t n, int64_t parts, const float* from, int64_t stride, float* to, bool accumulate);

// Panels [k, kPanelColumns] one after another, for all `columns` of b.
void pack_panels(int64_t columns, int64_t k, const float* b, int64_t ldb, bool transposed, float* panels);

}  // namespace ingot::kernels
