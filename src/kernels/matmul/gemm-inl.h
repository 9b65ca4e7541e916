// The register-blocked core of every matrix product: a few rows of C times a panel of columns, summed over one block of
// k. Included once for each instruction set (see Highway's foreach_target.h).
#if defined(INGOT_KERNELS_GEMM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef INGOT_KERNELS_GEMM_INL_H_
#undef INGOT_KERNELS_GEMM_INL_H_
#else
#define INGOT_KERNELS_GEMM_INL_H_
#endif

#include <algorithm>
#include <cstdint>

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
static_assert(kPanelColumns % kGemmWidth == 0);

// How A lies in memory: element (row i, step p) is at a[i * stride + p] or at a[p * stride + i].
enum class LayoutA { rows, columns };

// C[kRows, columns] (+)= A[kRows, depth] * B[depth, kGemmWidth], B's rows kPanelColumns apart. columns <= kGemmWidth.
template <int kRows, LayoutA kLayout>
HWY_NOINLINE void gemm_block(int64_t depth, const float* HWY_RESTRICT a, int64_t a_stride, const float* HWY_RESTRICT b,
                             float* HWY_RESTRICT c, int64_t ldc, int64_t columns, bool accumulate) {
  FloatVec left[kRows], right[kRows];
  for (int i = 0; i < kRows; ++i) left[i] = right[i] = hn::Zero(kFloat);
  for (int64_t p = 0; p < depth; ++p) {
    const FloatVec b_left = hn::LoadU(kFloat, b + p * kPanelColumns);
    const FloatVec b_right = hn::LoadU(kFloat, b + p * kPanelColumns + kGemmLanes);
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      const FloatVec factor = set(kLayout == LayoutA::rows ? a[i * a_stride + p] : a[p * a_stride + i]);
      left[i] = hn::MulAdd(factor, b_left, left[i]);
      right[i] = hn::MulAdd(factor, b_right, right[i]);
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
    for (int64_t j = 0; j < columns; ++j) row[j] = accumulate ? row[j] + buffer[j] : buffer[j];
  }
}

template <LayoutA kLayout>
using GemmBlock = void (*)(int64_t, const float*, int64_t, const float*, float*, int64_t, int64_t, bool);

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

// C[rows, columns] (+)= A[rows, depth] * one panel of B [depth, kPanelColumns], columns <= kPanelColumns. The panel is
// meant to stay in the first-level cache while the rows go by.
template <LayoutA kLayout>
HWY_INLINE void gemm_panel(int64_t rows, int64_t columns, int64_t depth, const float* a, int64_t a_stride,
                           const float* panel, float* c, int64_t ldc, bool accumulate) {
  const int64_t groups = (rows + kGemmRows - 1) / kGemmRows;
  const int64_t base = rows / groups, longer = rows % groups;  // even groups: no group of one or two rows at the end
  for (int64_t column = 0; column < columns; column += kGemmWidth) {
    const int64_t width = std::min<int64_t>(kGemmWidth, columns - column);
    int64_t row = 0;
    for (int64_t group = 0; group < groups; ++group) {
      const int64_t count = base + (group < longer ? 1 : 0);
      gemm_block_of<kLayout>(count)(depth, a + (kLayout == LayoutA::rows ? row * a_stride : row), a_stride,
                                    panel + column, c + row * ldc + column, ldc, width, accumulate);
      row += count;
    }
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
  for (int64_t j = 0; j < kPanelColumns; ++j) {
    const float* from = b + j * ldb;
    for (int64_t p = 0; p < depth; ++p) panel[p * kPanelColumns + j] = j < columns ? from[p] : 0.0f;
  }
}

}  // namespace ingot::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // INGOT_KERNELS_GEMM_INL_H_
