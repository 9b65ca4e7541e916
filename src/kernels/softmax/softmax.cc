#include "kernels/softmax/softmax.h"

#include <algorithm>
#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/softmax/softmax.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/elementwise/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ingot::kernels::HWY_NAMESPACE {
namespace {

constexpr float kLowest = -std::numeric_limits<float>::infinity();

struct Span {
  int64_t begin, size;
};
HWY_INLINE Span visible_span(const VisibleSpans& visible, int64_t row, int64_t n) {
  const int64_t begin = visible.first == nullptr ? 0 : std::max<int64_t>(visible.first[row], 0);
  const int64_t end = visible.last == nullptr ? n : std::min<int64_t>(visible.last[row] + int64_t{1}, n);
  return {std::min(begin, n), std::max<int64_t>(end - begin, 0)};
}

// What a row holds outside its span.
HWY_INLINE void clear_outside(float* row, Span span, int64_t n) {
  std::fill(row, row + span.begin, 0.0f);
  std::fill(row + span.begin + span.size, row + n, 0.0f);
}

// Returns the log-sum-exp. A row of -infinities becomes zeros.
float softmax_span(const float* x, float* y, int64_t n, float scale) {
  const FloatVec factor = set(scale);
  const float max =
      max_vectors(n, [&](int64_t i, auto access) HWY_ATTR { return hn::Mul(access.load(x + i), factor); });
  const FloatVec shift = set(max == kLowest ? 0.0f : max);
  const float sum = sum_vectors(n, [&](int64_t i, auto access) HWY_ATTR {
    const FloatVec e = vector_exp(hn::Sub(hn::Mul(access.load(x + i), factor), shift));
    access.store(e, y + i);
    return e;
  });
  if (sum == 0) return kLowest;
  const FloatVec inverse = set(1.0f / sum);
  for_vectors(n, [&](int64_t i, auto access) HWY_ATTR { access.store(hn::Mul(access.load(y + i), inverse), y + i); });
  return max + std::log(sum);
}

void softmax_rows(const Softmax& args, int64_t row_begin, int64_t row_end) {
  for (int64_t row = row_begin; row < row_end; ++row) {
    const Span span = visible_span(args.visible, row, args.n);
    float* y = args.y + row * args.y_stride;
    const float lse = softmax_span(args.x + row * args.x_stride + span.begin, y + span.begin, span.size, args.scale);
    clear_outside(y, span, args.n);
    if (args.log_sum_exp != nullptr) args.log_sum_exp[row] = lse;
  }
}

void grad_rows(const SoftmaxGrad& args, int64_t row_begin, int64_t row_end) {
  const FloatVec scale = set(args.scale);
  for (int64_t row = row_begin; row < row_end; ++row) {
    const Span span = visible_span(args.visible, row, args.n);
    const float* y = args.y + row * args.y_stride + span.begin;
    const float* dy = args.dy + row * args.dy_stride + span.begin;
    float* dx = args.dx + row * args.dx_stride + span.begin;
    const FloatVec dot = set(sum_vectors(
        span.size, [&](int64_t i, auto access) HWY_ATTR { return hn::Mul(access.load(y + i), access.load(dy + i)); }));
    for_vectors(span.size, [&](int64_t i, auto access) HWY_ATTR {
      const FloatVec slope = hn::Mul(access.load(y + i), hn::Sub(access.load(dy + i), dot));
      access.store(hn::Mul(slope, scale), dx + i);
    });
    clear_outside(dx - span.begin, span, args.n);
  }
}

void log_sum_exp_rows(const float* x, int64_t stride, int64_t n, float* out, int64_t row_begin, int64_t row_end) {
  for (int64_t row = row_begin; row < row_end; ++row) {
    const float* from = x + row * stride;
    const float max = max_vectors(n, [&](int64_t i, auto access) HWY_ATTR { return access.load(from + i); });
    const FloatVec shift = set(max == kLowest ? 0.0f : max);
    const float sum = sum_vectors(
        n, [&](int64_t i, auto access) HWY_ATTR { return vector_exp(hn::Sub(access.load(from + i), shift)); });
    out[row] = sum == 0 ? kLowest : max + std::log(sum);
  }
}

}  // namespace
}  // namespace ingot::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ingot::kernels {
namespace {
HWY_EXPORT(softmax_rows);
HWY_EXPORT(grad_rows);
HWY_EXPORT(log_sum_exp_rows);
}  // namespace

void softmax(const Softmax& args, int64_t row_begin, int64_t row_end) {
  HWY_DYNAMIC_DISPATCH(softmax_rows)(args, row_begin, row_end);
}
void softmax_grad(const SoftmaxGrad& args, int64_t row_begin, int64_t row_end) {
  HWY_DYNAMIC_DISPATCH(grad_rows)(args, row_begin, row_end);
}
void log_sum_exp(const float* x, int64_t x_stride, int64_t n, float* out, int64_t row_begin, int64_t row_end) {
  HWY_DYNAMIC_DISPATCH(log_sum_exp_rows)(x, x_stride, n, out, row_begin, row_end);
}

}  // namespace ingot::kernels
#endif  // HWY_ONCE
