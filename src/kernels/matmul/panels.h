// The packed layout of a matrix product's second operand: panels of kPanelColumns columns, each contiguous, the last
// one filled up with zeros. A panel of f32 is [k, kPanelColumns]. A panel of bf16 or f16 is [k / 2, kPanelColumns]
// words of two consecutive steps of k, the earlier one in the low half; an odd k is filled up with zeros. The same for
// every instruction set.
#pragma once

#include <cstdint>

#include "base/dtype.h"

namespace ingot::kernels {

inline constexpr int64_t kPanelColumns = 32;
// Steps of k summed in registers before C is touched, and as many pairs of steps: deep enough that touching C does not
// show. A panel of this depth, 96 KB, is read from the second-level cache.
inline constexpr int64_t kDepthBlock = 768;
inline constexpr int64_t kPairDepthBlock = 2 * kDepthBlock;
static_assert(kDepthBlock % 2 == 0, "no pair of steps lies in two blocks");
// The most rows of C that any instruction set holds in registers.
inline constexpr int64_t kMaxGemmRows = 12;

constexpr int64_t panels_of(int64_t columns) {
  return (columns + kPanelColumns - 1) / kPanelColumns;
}

constexpr int64_t pairs_of(int64_t steps) {
  return (steps + 1) / 2;
}

// Whether rows so many elements apart fight for the same few lines of a first-level cache.
constexpr bool rows_collide(int64_t stride, DType dtype) {
  constexpr int64_t kCacheWay = 4096;
  return stride * static_cast<int64_t>(size_of(dtype)) % kCacheWay == 0;
}

// Words between rows of A that are copied to be near each other: an odd number of cache lines, so that no two of them
// fight for one. Room for as many steps as a block of k has at most.
constexpr int64_t row_stride_of(int64_t k) {
  constexpr int64_t kLineWords = 16;
  const int64_t words = k < kDepthBlock ? k : kDepthBlock;
  return (words + 2 * kLineWords - 1) / (2 * kLineWords) * (2 * kLineWords) + kLineWords;
}

// Words of a panel of B and of a block of rows of A, of as many steps of k as are summed at a time.
constexpr int64_t panel_words(int64_t k) {
  return kPanelColumns * (k < kDepthBlock ? k : kDepthBlock);
}
constexpr int64_t block_words(int64_t rows, int64_t k) {
  return (rows + kMaxGemmRows) * row_stride_of(k);
}

// What packs A transposed takes so many steps at a time, in lines with room for a tile's rows and a vector.
inline constexpr int64_t kPackingSteps = 8;
constexpr int64_t packing_line(int64_t rows) {
  constexpr int64_t kMaxLanes = 16;
  return rows + kMaxLanes;
}
constexpr int64_t packing_words(int64_t rows) {
  return kPackingSteps * packing_line(rows);
}

// Bytes of one column of a panel.
constexpr int64_t panel_column_bytes(DType dtype, int64_t k) {
  return dtype == DType::f32 ? k * static_cast<int64_t>(sizeof(float))
                             : pairs_of(k) * static_cast<int64_t>(sizeof(uint32_t));
}

}  // namespace ingot::kernels
