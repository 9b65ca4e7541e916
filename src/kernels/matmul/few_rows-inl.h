// Products of a few rows (generation): one reading of B from memory is all that they can cost, so B goes through the
// registers as it lies, without packing. Included once for each instruction set (see Highway's
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

// B in memory as [k, columns]: some steps of k at a time, along all columns of the tile, so that memory is read in
// stretches as long as the tile is wide. C holds the sums in between; it stays in the first-level cache.
inline constexpr int64_t kStepsATime = 8;

// C[:, column, …) (+)= A[:, p, p + kSteps) * B[p, p + kSteps). The steps after those are asked for where there are any.
template <int kRows, int kSteps>
HWY_INLINE void add_steps(const MatmulTile& tile, int64_t p, int64_t column, bool accumulate, auto at) {
  const int64_t ahead = (p + 2 * kStepsATime <= tile.k ? kStepsATime : 0) * tile.ldb;
  const int64_t a_row = tile.transpose_a ? 1 : tile.lda, a_step = tile.transpose_a ? tile.lda : 1;
  const float* a = tile.a_floats() + p * a_step;
  const float* b = tile.b_floats() + p * tile.ldb + column;
  float* c = tile.c + column;
  FloatVec sums[kRows];
#pragma GCC unroll 4
  for (int i = 0; i < kRows; ++i) sums[i] = accumulate ? at.load(c + i * tile.ldc) : hn::Zero(kFloat);
#pragma GCC unroll 8
  for (int s = 0; s < kSteps; ++s) {
    const FloatVec values = at.load(b + s * tile.ldb);
    __builtin_prefetch(b + s * tile.ldb + ahead, 0, 2);
#pragma GCC unroll 4
    for (int i = 0; i < kRows; ++i) sums[i] = hn::MulAdd(set(a[i * a_row + s * a_step]), values, sums[i]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < kRows; ++i) at.store(sums[i], c + i * tile.ldc);
}

template <int kRows>
HWY_NOINLINE void few_rows_plain(const MatmulTile& tile) {
  bool accumulate = tile.accumulate;
  int64_t p = 0;
  for (; p + kStepsATime <= tile.k; p += kStepsATime, accumulate = true)
    for_vectors(tile.columns, [&](int64_t column, auto at)
                                  HWY_ATTR { add_steps<kRows, kStepsATime>(tile, p, column, accumulate, at); });
  for (; p < tile.k; ++p, accumulate = true)
    for_vectors(tile.columns,
                [&](int64_t column, auto at) HWY_ATTR { add_steps<kRows, 1>(tile, p, column, accumulate, at); });
}

// One column of C with B in memory as [columns, k]; A is not transposed. Columns go by one behind the other, so that B
// is one long stretch of memory, which the hardware asks for early enough by itself (asking for it here too is slower).
template <int kRows>
HWY_INLINE void few_dots(const MatmulTile& tile, int64_t column) {
  constexpr int kSums = kRows <= 2 ? 4 : 2;
  const float *a = tile.a_floats(), *b = tile.b_floats() + column * tile.ldb;
  FloatVec sums[kRows][kSums];
#pragma GCC unroll 4
  for (int i = 0; i < kRows; ++i)
#pragma GCC unroll 4
    for (int s = 0; s < kSums; ++s) sums[i][s] = hn::Zero(kFloat);
  const auto add_vector = [&](int64_t p, auto at, int s) HWY_ATTR {
    const FloatVec values = at.load(b + p);
#pragma GCC unroll 4
    for (int i = 0; i < kRows; ++i) sums[i][s] = hn::MulAdd(at.load(a + i * tile.lda + p), values, sums[i][s]);
  };
  const int64_t step = lanes();
  int64_t p = 0;
  for (; p + kSums * step <= tile.k; p += kSums * step) {
#pragma GCC unroll 4
    for (int s = 0; s < kSums; ++s) add_vector(p + s * step, WholeVector{}, s);
  }
  for_vectors(tile.k - p, [&](int64_t rest, auto at) HWY_ATTR { add_vector(p + rest, at, 0); });
#pragma GCC unroll 4
  for (int i = 0; i < kRows; ++i) {
    FloatVec total = hn::Add(sums[i][0], sums[i][1]);
    if (kSums == 4) total = hn::Add(total, hn::Add(sums[i][kSums - 2], sums[i][kSums - 1]));
    float* to = tile.c + i * tile.ldc + column;
    *to = tile.accumulate ? *to + sum_of_lanes(total) : sum_of_lanes(total);
  }
}

template <int kRows>
HWY_NOINLINE void few_rows_transposed(const MatmulTile& tile) {
  for (int64_t column = 0; column < tile.columns; ++column) few_dots<kRows>(tile, column);
}

// Whether run_few_rows takes the tile.
HWY_INLINE bool has_few_rows(const MatmulTile& tile) {
  return tile.a_dtype == DType::f32 && tile.b_dtype == DType::f32 && tile.rows <= kFewRows && !tile.packed_b &&
         !(tile.transpose_a && tile.transpose_b);
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
