// Adafactor (Shazeer and Stern, "Adafactor: Adaptive Learning Rates with Sublinear Memory Cost", 2018, algorithms 4 and
// 5). With g = grad * grad_scale, the second moment of a matrix is known by the means R of its rows and C of its
// columns,
//
//   V[i,j] = R[i] C[j] / mean(R),  u = g / sqrt(V),  p = decay * p - step * u
//
// where R, C are moving averages of the means of g^2 + eps and `step` is the rate divided by max(1, rms(u) /
// threshold). The whole of g must be seen before the first V, and the whole of u before the first p: so the gradient is
// read three times, the parameter read and written once, and nothing of their size is kept.
//
// fp32, matrices dense. Serial over the given range; nothing is allocated.
#pragma once

#include <cstdint>

namespace ingot::kernels {

// grad [rows, columns], for rows [row_begin, row_end): row_sums[r] of g^2, and column_sums [columns] of g^2 over these
// rows, overwritten (zeros for an empty range).
void adafactor_squares(const float* grad, double grad_scale, int64_t columns, int64_t row_begin, int64_t row_end,
                       float* row_sums, float* column_sums);

// The sum of u^2 over rows [row_begin, row_end), with u = g * row_factors[r] * column_factors[c].
double adafactor_update_squares(const float* grad, double grad_scale, const float* row_factors,
                                const float* column_factors, int64_t columns, int64_t row_begin, int64_t row_end);

// p = decay * p - step * u for rows [row_begin, row_end).
void adafactor_apply(double decay, double step, float* p, const float* grad, double grad_scale,
                     const float* row_factors, const float* column_factors, int64_t columns, int64_t row_begin,
                     int64_t row_end);

// A parameter that is no matrix keeps its second moment whole: v = beta2 * v + (1 - beta2) * (g^2 + eps), in place.
// Gives the sum of u^2 with u = g / sqrt(v).
double adafactor_vector_moment(const float* grad, double grad_scale, double beta2, double eps, float* v, int64_t n);
// p = decay * p - step * g / sqrt(v).
void adafactor_vector_apply(double decay, double step, float* p, const float* grad, double grad_scale, const float* v,
                            int64_t n);

}  // namespace ingot::kernels
