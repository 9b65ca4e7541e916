// Softmax over rows, with and without a span of visible elements, its gradient, and log-sum-exp.
//
// fp32 [rows, n], rows `stride` elements apart. Serial over rows [row_begin, row_end), each row by itself: any cut
// gives the same bits. The row's maximum is subtracted first, so that logits of any size are fine. A row with NaN or
// +infinity becomes NaN. Outputs may lie exactly over inputs.
#pragma once

#include <cstdint>

namespace ingot::kernels {

// Row r sees the elements first[r] <= j <= last[r] (clipped to the row); null: from the first, to the last. What is not
// visible counts as -infinity and yields 0; a row in which nothing is visible yields zeros.
struct VisibleSpans {
  const int32_t* first = nullptr;
  const int32_t* last = nullptr;
};

struct Softmax {
  const float* x = nullptr;
  int64_t x_stride = 0;
  float* y = nullptr;
  int64_t y_stride = 0;
  int64_t n = 0;
  float scale = 1;  // of x
  VisibleSpans visible = {};
  float* log_sum_exp = nullptr;  // or null; [rows], of the scaled row; -infinity where nothing is visible
};
// y = softmax(scale * x)
void softmax(const Softmax& args, int64_t row_begin, int64_t row_end);

struct SoftmaxGrad {
  const float* y = nullptr;
  int64_t y_stride = 0;
  const float* dy = nullptr;
  int64_t dy_stride = 0;
  float* dx = nullptr;
  int64_t dx_stride = 0;
  int64_t n = 0;
  float scale = 1;
  VisibleSpans visible = {};
};
// dx = scale * y * (dy - sum(dy * y))
void softmax_grad(const SoftmaxGrad& args, int64_t row_begin, int64_t row_end);

// out[r] = log(sum(exp(x[r]))), -infinity for a row of -infinities or for n = 0.
void log_sum_exp(const float* x, int64_t x_stride, int64_t n, float* out, int64_t row_begin, int64_t row_end);

}  // namespace ingot::kernels
