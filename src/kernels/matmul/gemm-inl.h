// The register-blocked core of every fp32 product: a few rows of C times a panel of columns, summed over one block of
// k. Included once for each instruction set (see Highway's foreach_target.h).
//
// Why not oneDNN 2.6: its packed (brgemm) products take only dense A and C, so not a range of columns, a slice of q/k/v
// or X transposed. This one takes any stride, allocates nothing, has one packed layout for all sets, and is as fast
// (bench/matmul_vs_onednn.cc: 0.83 to 1.17 of oneDNN's rate on GPT-2's shapes, median 1.02).
#if defined(INGOT_KERNELS_GEMM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef INGOT_KERNELS_GEMM_INL_H_
#undef INGOT_KERNELS_GEMM_INL_H_
#else
#define INGOT_KERNELS_GEMM_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "kernels/matmul/lookahead.h"
#include "kernels/matmul/panels.h"
#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ingot::kernels::HWY_NAMESPACE {

inline constexpr int kGemmLanes = static_cast<int>(hn::MaxLanes(FloatTag()));
inline constexpr int kGemmWidth = 2 * kGemmLanes;  // columns of C held in registers
// Rows of C held in registers: two accumulators each, leaving room for two vectors of B and a broadcast of A.
#if HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM_A64
inline constexpr int kGemmRows = 12;
#elif HWY_TARGET == HWY_AVX2
inline constexpr int kGemmRows = 6;
#else
inline constexpr int kGemmRows = 4;
#endif
static_assert(kPanelColumns % kGemmWidth == 0 && kGemmRows <= kMaxGemmRows);

// How A lies in memory: element (row i, step p) is at a[i * stride + p] or at a[p * stride + i].
enum class LayoutA { rows, columns };

// C[kRows, columns] (+)= A[kRows, depth] * B[depth, kGemmWidth], B's rows kPanelColumns apart. columns <= kGemmWidth.
// Looking ahead takes registers that pointers to A's rows need, so only columns of A go with it.
template <int kRows, LayoutA kLayout>
HWY_NOINLINE void gemm_block(int64_t depth, const float* HWY_RESTRICT a, int64_t a_stride, const float* HWY_RESTRICT b,
                             float* HWY_RESTRICT c, int64_t ldc, int64_t columns, bool accumulate, Lookahead* ahead) {
  FloatVec left[kRows], right[kRows];
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
    __builtin_prefetch(c + i * ldc, 1);
    if (kGemmLanes == 16) __builtin_prefetch(c + i * ldc + kGemmLanes, 1);
    left[i] = right[i] = hn::Zero(kFloat);
  }
  const int64_t chunk = kLayout == LayoutA::columns ? kGemmChunk : depth;
  for (int64_t begin = 0; begin < depth; begin += chunk) {
    if (kLayout == LayoutA::columns) ahead->ask();
    const int64_t end = std::min(depth, begin + chunk);
    for (int64_t p = begin; p < end; ++p) {
      const FloatVec b_left = hn::LoadU(kFloat, b + p * kPanelColumns);
      const FloatVec b_right = hn::LoadU(kFloat, b + p * kPanelColumns + kGemmLanes);
#pragma GCC unroll 16
      for (int i = 0; i < kRows; ++i) {
        const FloatVec factor = set(kLayout == LayoutA::rows ? a[i * a_stride + p] : a[p * a_stride + i]);
        left[i] = hn::MulAdd(factor, b_left, left[i]);
        right[i] = hn::MulAdd(factor, b_right, right[i]);
      }
    }
  }
  if (columns == kGemmWidth) {
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      float* row = c + i * ldc;
      if (accumulate) {
        left[i] = hn::Add(hn::LoadU(kFloat, row), left[i]);
        right[i] = hn::Add(hn::LoadU(kFloat, row + kGemmLanes), right[i]);
      }
      hn::StoreU(left[i], kFloat, row);
      hn::StoreU(right[i], kFloat, row + kGemmLanes);
    }
    return;
  }
  HWY_ALIGN float buffer[kGemmWidth];
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
    hn::Store(left[i], kFloat, buffer);
    hn::Store(right[i], kFloat, buffer + kGemmLanes);
    float* row = c + i * ldc;
    for_vectors(columns, [&](int64_t j, auto at) {
      at.store(accumulate ? hn::Add(at.load(row + j), hn::LoadU(kFloat, buffer + j)) : hn::LoadU(kFloat, buffer + j),
               row + j);
    });
  }
}

template <LayoutA kLayout>
using GemmBlock = void (*)(int64_t, const float*, int64_t, const float*, float*, int64_t, int64_t, bool, Lookahead*);

template <LayoutA kLayout>
HWY_INLINE GemmBlock<kLayout> gemm_block_of(int64_t rows) {
  switch (rows) {
    case 1:
      return gemm_block<1, kLayout>;
    case 2:
      return gemm_block<2, kLayout>;
    case 3:
      return gemm_block<3, kLayout>;
    case 4:
      return gemm_block<4, kLayout>;
#if HWY_TARGET <= HWY_AVX2 || HWY_ARCH_ARM_A64
    case 5:
      return gemm_block<5, kLayout>;
    case 6:
      return gemm_block<6, kLayout>;
#endif
#if HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM_A64
    case 7:
      return gemm_block<7, kLayout>;
    case 8:
      return gemm_block<8, kLayout>;
    case 9:
      return gemm_block<9, kLayout>;
    case 10:
      return gemm_block<10, kLayout>;
    case 11:
      return gemm_block<11, kLayout>;
    case 12:
      return gemm_block<12, kLayout>;
#endif
    default:
      return nullptr;
  }
}

// The rows of a tile in groups of at most kGemmRows, as even as can be: no group of one or two rows at the end.
struct RowGroups {
  explicit RowGroups(int64_t rows)
      : count((rows + kGemmRows - 1) / kGemmRows), base(rows / count), longer(rows % count) {}
  int64_t size(int64_t group) const { return base + (group < longer ? 1 : 0); }
  int64_t count, base, longer;
};

// C[rows, columns] (+)= A[rows, depth] * one panel of B [depth, kPanelColumns], columns <= kPanelColumns. The panel is
// meant to stay in the first-level cache while the rows go by.
template <LayoutA kLayout>
HWY_INLINE void gemm_panel(int64_t rows, int64_t columns, int64_t depth, const float* a, int64_t a_stride,
                           const float* panel, float* c, int64_t ldc, bool accumulate) {
  const RowGroups groups(rows);
  Lookahead nothing;
  for (int64_t column = 0; column < columns; column += kGemmWidth) {
    const int64_t width = std::min<int64_t>(kGemmWidth, columns - column);
    int64_t row = 0;
    for (int64_t group = 0; group < groups.count; ++group) {
      const int64_t count = groups.size(group);
      gemm_block_of<kLayout>(count)(depth, a + (kLayout == LayoutA::rows ? row * a_stride : row), a_stride,
                                    panel + column, c + row * ldc + column, ldc, width, accumulate, &nothing);
      row += count;
    }
  }
}

// The same with A packed by pack_rows or pack_rows_transposed.
HWY_INLINE void gemm_panel_packed(int64_t rows, int64_t columns, int64_t depth, const float* a, const float* panel,
                                  float* c, int64_t ldc, bool accumulate, Lookahead& ahead) {
  const RowGroups groups(rows);
  for (int64_t column = 0; column < columns; column += kGemmWidth) {
    const int64_t width = std::min<int64_t>(kGemmWidth, columns - column);
    int64_t row = 0;
    for (int64_t group = 0; group < groups.count; ++group) {
      const int64_t count = groups.size(group);
      gemm_block_of<LayoutA::columns>(count)(depth, a + group * depth * kGemmRows, kGemmRows, panel + column,
                                             c + row * ldc + column, ldc, width, accumulate, &ahead);
      row += count;
    }
  }
}

#if HWY_TARGET != HWY_SCALAR
// Four floats of a row, of the row 4 below it, and so on, as many as fill a vector.
HWY_INLINE FloatVec load_every_fourth_row(const float* from, int64_t stride) {
  const hn::FixedTag<float, 4> block;
#if HWY_TARGET <= HWY_AVX3
  const hn::FixedTag<float, 8> half;
  return hn::Combine(kFloat,
                     hn::Combine(half, hn::LoadU(block, from + 12 * stride), hn::LoadU(block, from + 8 * stride)),
                     hn::Combine(half, hn::LoadU(block, from + 4 * stride), hn::LoadU(block, from)));
#elif HWY_TARGET == HWY_AVX2
  return hn::Combine(kFloat, hn::LoadU(block, from + 4 * stride), hn::LoadU(block, from));
#else
  return hn::LoadU(block, from);
#endif
}

// to[p, j] = from[j, p] for 4 steps p and as many rows j as a vector has lanes (D: its tag), by 4 x 4 transposes in
// blocks.
template <class D, class V>
HWY_INLINE void store_transposed(D d, V row0, V row1, V row2, V row3, hn::TFromD<D>* to, int64_t to_stride) {
  const hn::Repartition<double, D> wide;
  const auto low01 = hn::BitCast(wide, hn::InterleaveLower(d, row0, row1)),
             low23 = hn::BitCast(wide, hn::InterleaveLower(d, row2, row3));
  const auto high01 = hn::BitCast(wide, hn::InterleaveUpper(d, row0, row1)),
             high23 = hn::BitCast(wide, hn::InterleaveUpper(d, row2, row3));
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(wide, low01, low23)), d, to);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(wide, low01, low23)), d, to + to_stride);
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(wide, high01, high23)), d, to + 2 * to_stride);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(wide, high01, high23)), d, to + 3 * to_stride);
}
#endif

// A[rows, depth], row stride lda, packed for gemm_panel_packed: for each group of rows [depth, kGemmRows].
HWY_INLINE void pack_rows(int64_t rows, int64_t depth, const float* a, int64_t lda, float* packed) {
  const RowGroups groups(rows);
  for (int64_t group = 0; group < groups.count; ++group) {
    const int64_t count = groups.size(group);
    int64_t row = 0;
#if HWY_TARGET != HWY_SCALAR
    const hn::FixedTag<float, 4> block;
    for (; row + 4 <= kGemmRows; row += 4) {
      const auto at = [&](int64_t i) {
        return a + std::min(row + i, count - 1) * lda;
      };  // beyond the end: never read back
      const float *row0 = at(0), *row1 = at(1), *row2 = at(2), *row3 = at(3);
      int64_t p = 0;
      for (; p + 4 <= depth; p += 4) {
        store_transposed(block, hn::LoadU(block, row0 + p), hn::LoadU(block, row1 + p), hn::LoadU(block, row2 + p),
                         hn::LoadU(block, row3 + p), packed + p * kGemmRows + row, kGemmRows);
      }
      for (; p < depth; ++p) {
        float* to = packed + p * kGemmRows + row;
        to[0] = row0[p];
        to[1] = row1[p];
        to[2] = row2[p];
        to[3] = row3[p];
      }
    }
#endif
    for (; row < count; ++row) {
      for (int64_t p = 0; p < depth; ++p) packed[p * kGemmRows + row] = a[row * lda + p];
    }
    a += count * lda;
    packed += depth * kGemmRows;
  }
}

// The same from A in memory as [depth, rows].
HWY_INLINE void pack_rows_transposed(int64_t rows, int64_t depth, const float* a, int64_t lda, float* packed) {
  const RowGroups groups(rows);
  for (int64_t group = 0; group < groups.count; ++group) {
    const int64_t count = groups.size(group);
    for (int64_t p = 0; p < depth; ++p) {
      if (count == kGemmRows)
        std::memcpy(packed + p * kGemmRows, a + p * lda, kGemmRows * sizeof(float));
      else
        std::copy_n(a + p * lda, count, packed + p * kGemmRows);
    }
    a += count;
    packed += depth * kGemmRows;
  }
}

// Panel [depth, kPanelColumns] from B [depth, columns] with row stride ldb; columns beyond the end become zero.
HWY_INLINE void pack_panel(int64_t depth, int64_t columns, const float* b, int64_t ldb, float* panel) {
  for (int64_t p = 0; p < depth; ++p) {
    float* to = panel + p * kPanelColumns;
    const float* from = b + p * ldb;
    if (columns == kPanelColumns) {
      for (int64_t j = 0; j < kPanelColumns; j += kGemmLanes) hn::StoreU(hn::LoadU(kFloat, from + j), kFloat, to + j);
    } else {
      for (int64_t j = 0; j < kPanelColumns; ++j) to[j] = j < columns ? from[j] : 0.0f;
    }
  }
}

// The same from B in memory as [columns, depth] with row stride ldb.
HWY_INLINE void pack_panel_transposed(int64_t depth, int64_t columns, const float* b, int64_t ldb, float* panel) {
  int64_t p = 0;
#if HWY_TARGET != HWY_SCALAR
  for (; columns == kPanelColumns && p + 4 <= depth; p += 4) {
    for (int64_t j = 0; j < kPanelColumns; j += kGemmLanes) {
      const float* from = b + j * ldb + p;
      store_transposed(kFloat, load_every_fourth_row(from, ldb), load_every_fourth_row(from + ldb, ldb),
                       load_every_fourth_row(from + 2 * ldb, ldb), load_every_fourth_row(from + 3 * ldb, ldb),
                       panel + p * kPanelColumns + j, kPanelColumns);
    }
  }
#endif
  for (int64_t j = 0; j < kPanelColumns; ++j) {
    const float* from = b + j * ldb;
    for (int64_t q = p; q < depth; ++q) panel[q * kPanelColumns + j] = j < columns ? from[q] : 0.0f;
  }
}

}  // namespace ingot::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // INGOT_KERNELS_GEMM_INL_H_
