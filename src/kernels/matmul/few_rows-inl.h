// Products of a few rows (generation): one reading of B from memory is all that they can cost, so B goes through the
// registers as it lies, without packing, and is asked for early. Included once for each instruction set (see Highway's
// foreach_target.h).
#if defined(INGOT_KERNELS_FEW_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef INGOT_KERNELS_FEW_ROWS_INL_H_
#undef INGOT_KERNELS_FEW_ROWS_INL_H_
#else
#define INGOT_KERNELS_FEW_ROWS_INL_H_
#endif

#include <cstdint>

#include "kernels/matmul/matmul_tiles.h"
#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ingot::kernels::HWY_NAMESPACE {

// Steps of k between what is multiplied and what is asked for: rows of B lie pages apart, which no hardware follows.
inline constexpr int64_t kStepsAhead = 12;

HWY_INLINE void store_sum(const MatmulTile& tile, int64_t row, int64_t column, FloatVec sum, auto at) {
  float* to = tile.c + row * tile.ldc + column;
  at.store(tile.accumulate ? hn::Add(at.load(to), sum) : sum, to);
}

// B in memory as [k, columns]. Sums of even and of odd steps, or of all where rows enough keep the multipliers busy.
template <int kRows>
HWY_NOINLINE void few_rows_plain(const MatmulTile& tile) {
  constexpr int kVectors = kRows == 1 ? 4 : 2, kSums = kRows <= 2 ? 2 : 1;
  const int64_t step = lanes(), width = kVectors * step;
  const int64_t a_row = tile.transpose_a ? 1 : tile.lda, a_step = tile.transpose_a ? tile.lda : 1;
  int64_t column = 0;
  for (; column + width <= tile.columns; column += width) {
    FloatVec sums[kSums][kRows][kVectors];
#pragma GCC unroll 4
    for (int s = 0; s < kSums; ++s)
#pragma GCC unroll 4
      for (int i = 0; i < kRows; ++i)
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) sums[s][i][v] = hn::Zero(kFloat);
    const auto add_step = [&](int64_t p, FloatVec(&part)[kRows][kVectors]) HWY_ATTR {
      const float* b = tile.b + p * tile.ldb + column;
      for (int64_t line = 0; line < width; line += 16) __builtin_prefetch(b + kStepsAhead * tile.ldb + line);
      FloatVec factors[kRows];
#pragma GCC unroll 4
      for (int i = 0; i < kRows; ++i) factors[i] = set(tile.a[i * a_row + p * a_step]);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        const FloatVec values = hn::LoadU(kFloat, b + v * step);
#pragma GCC unroll 4
        for (int i = 0; i < kRows; ++i) part[i][v] = hn::MulAdd(factors[i], values, part[i][v]);
      }
    };
    int64_t p = 0;
    for (; p + kSums <= tile.k; p += kSums)
#pragma GCC unroll 4
      for (int s = 0; s < kSums; ++s) add_step(p + s, sums[s]);
    if (p < tile.k) add_step(p, sums[0]);
#pragma GCC unroll 4
    for (int i = 0; i < kRows; ++i)
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        const FloatVec sum = kSums == 1 ? sums[0][i][v] : hn::Add(sums[0][i][v], sums[kSums - 1][i][v]);
        store_sum(tile, i, column + v * step, sum, WholeVector{});
      }
  }
  for_vectors(tile.columns - column, [&](int64_t j, auto at) HWY_ATTR {
#pragma GCC unroll 4
    for (int i = 0; i < kRows; ++i) {
      FloatVec sum = hn::Zero(kFloat);
      for (int64_t p = 0; p < tile.k; ++p)
        sum = hn::MulAdd(set(tile.a[i * a_row + p * a_step]), at.load(tile.b + p * tile.ldb + column + j), sum);
      store_sum(tile, i, column + j, sum, at);
    }
  });
}

// kColumns columns of C with B in memory as [columns, k]; A is not transposed.
template <int kRows, int kColumns>
HWY_INLINE void few_dots(const MatmulTile& tile, int64_t column) {
  constexpr int kSums = kRows * kColumns <= 4 ? 2 : 1;
  const float* b = tile.b + column * tile.ldb;
  FloatVec sums[kSums][kRows][kColumns];
#pragma GCC unroll 4
  for (int s = 0; s < kSums; ++s)
#pragma GCC unroll 4
    for (int i = 0; i < kRows; ++i)
#pragma GCC unroll 4
      for (int j = 0; j < kColumns; ++j) sums[s][i][j] = hn::Zero(kFloat);
  const auto add_vector = [&](int64_t p, auto at, FloatVec(&part)[kRows][kColumns]) HWY_ATTR {
    FloatVec factors[kRows];
#pragma GCC unroll 4
    for (int i = 0; i < kRows; ++i) factors[i] = at.load(tile.a + i * tile.lda + p);
#pragma GCC unroll 4
    for (int j = 0; j < kColumns; ++j) {
      const FloatVec values = at.load(b + j * tile.ldb + p);
#pragma GCC unroll 4
      for (int i = 0; i < kRows; ++i) part[i][j] = hn::MulAdd(factors[i], values, part[i][j]);
    }
  };
  const int64_t step = lanes();
  int64_t p = 0;
  for (; p + kSums * step <= tile.k; p += kSums * step)
#pragma GCC unroll 4
    for (int s = 0; s < kSums; ++s) add_vector(p + s * step, WholeVector{}, sums[s]);
  for_vectors(tile.k - p, [&](int64_t rest, auto at) HWY_ATTR { add_vector(p + rest, at, sums[0]); });
#pragma GCC unroll 4
  for (int i = 0; i < kRows; ++i)
#pragma GCC unroll 4
    for (int j = 0; j < kColumns; ++j) {
      float* to = tile.c + i * tile.ldc + column + j;
      const float sum = sum_of_lanes(kSums == 1 ? sums[0][i][j] : hn::Add(sums[0][i][j], sums[kSums - 1][i][j]));
      *to = tile.accumulate ? *to + sum : sum;
    }
}

template <int kRows>
HWY_NOINLINE void few_rows_transposed(const MatmulTile& tile) {
  constexpr int kColumns = kRows <= 2 ? 4 : 2;
  int64_t column = 0;
  for (; column + kColumns <= tile.columns; column += kColumns) few_dots<kRows, kColumns>(tile, column);
  for (; column < tile.columns; ++column) few_dots<kRows, 1>(tile, column);
}

// Whether run_few_rows takes the tile.
HWY_INLINE bool has_few_rows(const MatmulTile& tile) {
  return tile.rows <= kFewRows && !tile.packed_b && !(tile.transpose_a && tile.transpose_b);
}

HWY_INLINE void run_few_rows(const MatmulTile& tile) {
  static_assert(kFewRows == 4);
  switch (tile.rows) {
    case 1:
      return tile.transpose_b ? few_rows_transposed<1>(tile) : few_rows_plain<1>(tile);
    case 2:
      return tile.transpose_b ? few_rows_transposed<2>(tile) : few_rows_plain<2>(tile);
    case 3:
      return tile.transpose_b ? few_rows_transposed<3>(tile) : few_rows_plain<3>(tile);
    default:
      return tile.transpose_b ? few_rows_transposed<4>(tile) : few_rows_plain<4>(tile);
  }
}

}  // namespace ingot::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // INGOT_KERNELS_FEW_ROWS_INL_H_
