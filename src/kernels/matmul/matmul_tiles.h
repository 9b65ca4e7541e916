// The vector code of one tile of a matrix product and of packing; matmul.h has the plan around it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/dtype.h"
#include "base/parallel.h"
#include "kernels/matmul/panels.h"

namespace ingot::kernels {

// How products of two bf16 operands are summed: widened to fp32 by the fp32 core, or in pairs (panels.h), by portable
// code (which is there to test what surrounds the CPU's) or the CPU's own dot products.
enum class Bf16Product : uint8_t { widened, portable_pairs, cpu_pairs };

// The best that this CPU has in the instruction set in use.
Bf16Product best_bf16_product();

// C[rows, columns] (+)= A[rows, k] * B[k, columns], summed in f32. The pointers are at the tile's own first row and
// column.
struct MatmulTile {
  int64_t rows = 0, columns = 0, k = 0;
  const void* a = nullptr;  // [rows, k] at a[i * lda + p], transposed at a[p * lda + i]
  int64_t lda = 0;
  bool transpose_a = false;
  bool paired_a = false;    // of products in pairs: A is [pairs_of(k), rows] words of two steps, lda words apart
  const void* b = nullptr;  // [k, columns] likewise, or the tile's first panel (panels.h)
  int64_t ldb = 0;
  int64_t packed_k = 0;  // of products in pairs: steps of the panels, if more than k
  bool transpose_b = false, packed_b = false;
  float* c = nullptr;
  int64_t ldc = 0;
  bool accumulate = false;
  // Of products in pairs: C goes here, rounded to bf16, and `c` holds sums in between.
  uint16_t* rounded = nullptr;
  int64_t rounded_stride = 0;
  DType a_dtype = DType::f32, b_dtype = DType::f32;  // f32, bf16 or f16
  Bf16Product bf16 = Bf16Product::widened;           // counts where both are bf16

  const float* a_floats() const { return static_cast<const float*>(a); }
  const float* b_floats() const { return static_cast<const float*>(b); }
  const uint16_t* a_halves() const { return static_cast<const uint16_t*>(a); }
  const uint16_t* b_halves() const { return static_cast<const uint16_t*>(b); }
  const uint32_t* b_pairs() const { return static_cast<const uint32_t*>(b); }
  bool in_pairs() const { return a_dtype == DType::bf16 && b_dtype == DType::bf16 && bf16 != Bf16Product::widened; }
};

// Tiles of at most so many rows read B as it lies in memory: packing would cost more than the product.
inline constexpr int64_t kFewRows = 4;

// For tiles of so many rows and steps, or fewer; a multiple of 64.
size_t matmul_tile_scratch_bytes(int64_t rows, int64_t k, DType a, DType b);
void run_matmul_tile(const MatmulTile& tile, float* scratch);

// Panels (panels.h) one after another, of k steps and `columns` columns.
struct PackedPanels {
  std::byte* panels = nullptr;
  DType dtype = DType::f32;
  int64_t k = 0, columns = 0;
};

// Writes some steps of all the panels, beginning at an even one, from b, which is at step 0 and column 0 and of
// `source`: the panels' dtype or f32, which is rounded.
void pack_panels(const PackedPanels& to, const void* b, DType source, int64_t ldb, bool transposed, Range steps);

}  // namespace ingot::kernels
