// Moving elements without arithmetic: transposes, permutations, slices, concatenation, filling; and casts between
// formats. Serial over the given range; nothing is allocated; inputs and outputs must not overlap unless said.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/dtype.h"
#include "base/shape.h"

namespace ingot::kernels {

// to[c * to_stride + r] = from[r * from_stride + c] for r < rows, c < columns: elements of `size` 2 or 4 bytes; strides
// in elements. Tiles are made by moving the pointers. `stream` writes around the caches, where `to` and its rows are
// aligned to 64 bytes: right if the whole output is larger than the caches and not read soon (three times as fast).
void transpose(const void* from, int64_t from_stride, void* to, int64_t to_stride, int64_t rows, int64_t columns,
               size_t size, bool stream = false);

// to[i · to_strides] = from[i · from_strides] for every index i of `shape`: any permutation, slice, broadcast (a stride
// of 0) or a part of a concatenation. Strides in elements of `size` 1, 2, 4 or 8 bytes.
struct StridedCopy {
  Shape shape;
  Shape from_strides, to_strides;
  size_t size = 4;
};
// The copy that makes from (dense, of `shape`) into to (dense) with to's axis k being from's axis permutation[k].
StridedCopy permutation_copy(const Shape& shape, const Shape& permutation, size_t size);
// The rows of a copy: the extents of all axes but the last, in row-major order. Work is cut in ranges of rows.
int64_t rows_of(const StridedCopy& copy);
void strided_copy(const StridedCopy& copy, const void* from, void* to, int64_t row_begin, int64_t row_end);

void fill(float* to, float value, int64_t n);

// n elements from one format to another: f32 <-> bf16, f32 <-> f16, bf16 <-> f16, f32 <-> f64, and any format to
// itself. Rounds to nearest even; NaN stays NaN; beyond the range becomes infinite.
bool can_cast(DType from_dtype, DType to_dtype);
void cast(const void* from, DType from_dtype, void* to, DType to_dtype, int64_t n);

// n floats as they come back from memory in bf16 or f16. `to` may be `from`.
void round_through(DType dtype, const float* from, float* to, int64_t n);

}  // namespace ingot::kernels
