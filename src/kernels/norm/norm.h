// Layer norm (Ba, Kiros and Hinton, 2016) and RMS norm (Zhang and Sennrich, 2019) of rows, with the residual addition
// before them fused in, and their gradients.
//
// All fp32. x, y and so on are [rows, n]; weight and bias [n]; mean and rstd [rows]. Serial over rows [row_begin,
// row_end). A row's results depend on that row alone; gradients of weight and bias are summed over the range in the
// order of its rows, for the caller to cut ranges by shape and to add up their partial sums in a fixed order
// (add_partials in reduce/reduce.h). Thread-safe: a call writes its rows of its outputs, and its partial sums. Nothing
// is allocated.
#pragma once

#include <cstdint>

#include "kernels/elementwise/elementwise.h"

namespace ingot::kernels {

// Where rows are. Dense by default. With `inner` rows side by side in each outer row of `outer_stride` elements, a norm
// runs over, say, the heads of q inside a fused q/k/v row: row r is at (r / inner) * outer_stride + (r % inner) * n.
struct RowLayout {
  int64_t inner = 1;
  int64_t outer_stride = 0;  // 0: dense
};

// Dropout of the addend of a residual; p = 0: none. The stream's rows are the norm's, row_length usually n.
struct ResidualDropout {
  EwStream stream;
  float p = 0;
};

struct NormForward {
  const float* x = nullptr;
  const float* weight = nullptr;  // or null: ones
  const float* bias = nullptr;    // or null: zeros
  float* y = nullptr;             // may be x (or sum)
  float* mean = nullptr;          // or null; layer norm only
  float* rstd = nullptr;          // or null
  int64_t n = 0;
  float eps = 1e-5f;
  RowLayout x_rows = {}, y_rows = {};
  // Residual: with delta, sum = x + dropout(delta) is written (dense; may be x or delta) and normalised instead of x.
  const float* delta = nullptr;
  float* sum = nullptr;
  ResidualDropout dropout = {};
  DType sum_stored_as = DType::f32;  // bf16, f16: the sum is rounded to it, in f32, and normalised so
};

// y = (x - mean) / sqrt(variance + eps) * weight + bias, with the biased variance.
void layer_norm(const NormForward& args, int64_t row_begin, int64_t row_end);
// y = x / sqrt(mean(x^2) + eps) * weight + bias.
void rms_norm(const NormForward& args, int64_t row_begin, int64_t row_end);

struct NormBackward {
  const float* x = nullptr;  // what was normalised: with a residual, its sum
  const float* dy = nullptr;
  const float* weight = nullptr;
  const float* mean = nullptr;  // layer norm
  const float* rstd = nullptr;
  float* dx = nullptr;  // may be x, dy or d_residual
  int64_t n = 0;
  RowLayout x_rows = {}, dy_rows = {}, dx_rows = {};
  const float* d_residual = nullptr;  // or null; dense: added to dx
  // Sums over this range of rows, or null; [n] each; overwritten (zero for an empty range).
  float* d_weight = nullptr;
  float* d_bias = nullptr;
  // The gradient of the residual's addend, dropout(dx), or null (without dropout it is dx itself); dense.
  float* d_delta = nullptr;
  ResidualDropout dropout = {};
};

void layer_norm_grad(const NormBackward& args, int64_t row_begin, int64_t row_end);
void rms_norm_grad(const NormBackward& args, int64_t row_begin, int64_t row_end);

}  // namespace ingot::kernels
