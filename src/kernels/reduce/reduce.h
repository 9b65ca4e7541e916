// Sums in a fixed order, and what a step must know about its numbers: norms, largest magnitude, the first that is not
// finite.
//
// fp32 in; serial over the given range. The order of additions depends on the range alone: cut ranges by shape and add
// their results in order, and the sum is the same on any number of threads.
#pragma once

#include <cstdint>
#include <span>

#include "base/shape.h"

namespace ingot::kernels {

// In double, so that neither length nor magnitude spoils it.
double sum(const float* x, int64_t n);
double sum_squares(const float* x, int64_t n);

// 0 for n = 0. NaN if any element is.
float max_abs(const float* x, int64_t n);
// The index of the first element that is infinite or NaN, or -1.
int64_t first_nonfinite(const float* x, int64_t n);

// x [rows, columns], rows `stride` apart. out[columns]: the sum over rows [row_begin, row_end), in their order, in
// fp32; overwritten (zeros for an empty range). The gradient of a bias, for a range of rows.
void column_sums(const float* x, int64_t stride, int64_t columns, int64_t row_begin, int64_t row_end, float* out);
// out[r]: the sum of row r, for rows [row_begin, row_end).
void row_sums(const float* x, int64_t stride, int64_t columns, int64_t row_begin, int64_t row_end, float* out);

// out[c] = partials[0][c] + partials[1][c] + …, or out[c] += that, for columns [column_begin, column_end); partials
// [parts, columns] dense.
void add_partials(const float* partials, int64_t parts, int64_t columns, int64_t column_begin, int64_t column_end,
                  bool accumulate, float* out);

// A sum over any axes: out[k] = sum over r of x[offset(k) + offset(r)], k over the kept extents in row-major order, r
// over the reduced. Strides in elements, 0 allowed. In double; for the odd cases, element by element.
struct StridedSum {
  Shape kept, kept_strides;
  Shape reduced, reduced_strides;
};
void strided_sum(const float* x, const StridedSum& shape, int64_t out_begin, int64_t out_end, float* out);

}  // namespace ingot::kernels
