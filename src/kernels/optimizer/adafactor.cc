#include "kernels/optimizer/adafactor.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/optimizer/adafactor.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ingot::kernels::HWY_NAMESPACE {
namespace {

void squares(const float* grad, double grad_scale, int64_t columns, int64_t row_begin, int64_t row_end, float* row_sums,
             float* column_sums) {
  std::fill_n(column_sums, columns, 0.0f);
  const FloatVec scale = set_rounded(grad_scale);
  for (int64_t r = row_begin; r < row_end; ++r) {
    const float* row = grad + r * columns;
    row_sums[r] = sum_vectors(columns, [&](int64_t i, auto access) HWY_ATTR {
      const FloatVec g = hn::Mul(access.load(row + i), scale);
      const FloatVec square = hn::Mul(g, g);
      access.store(hn::Add(access.load(column_sums + i), square), column_sums + i);
      return square;
    });
  }
}

double update_squares(const float* grad, double grad_scale, const float* row_factors, const float* column_factors,
                      int64_t columns, int64_t row_begin, int64_t row_end) {
  double total = 0;
  for (int64_t r = row_begin; r < row_end; ++r) {
    const float* row = grad + r * columns;
    const FloatVec factor = set(static_cast<float>(grad_scale * row_factors[r]));
    total += sum_vectors(columns, [&](int64_t i, auto access) HWY_ATTR {
      const FloatVec u = hn::Mul(hn::Mul(access.load(row + i), factor), access.load(column_factors + i));
      return hn::Mul(u, u);
    });
  }
  return total;
}

void apply(double decay, double step, float* p, const float* grad, double grad_scale, const float* row_factors,
           const float* column_factors, int64_t columns, int64_t row_begin, int64_t row_end) {
  const FloatVec keep = set_rounded(decay), step_size = set_rounded(step);
  for (int64_t r = row_begin; r < row_end; ++r) {
    const float* row = grad + r * columns;
    float* out = p + r * columns;
    const FloatVec factor = set(static_cast<float>(grad_scale * row_factors[r]));
    for_vectors(columns, [&](int64_t i, auto access) HWY_ATTR {
      const FloatVec u = hn::Mul(hn::Mul(access.load(row + i), factor), access.load(column_factors + i));
      access.store(hn::NegMulAdd(step_size, u, hn::Mul(access.load(out + i), keep)), out + i);
    });
  }
}

double vector_moment(const float* grad, double grad_scale, double beta2, double eps, float* v, int64_t n) {
  const FloatVec scale = set_rounded(grad_scale), old = set_rounded(beta2), rest = set_rounded(1 - beta2);
  const FloatVec floor = set_rounded(eps);
  return sum_vectors(n, [&](int64_t i, auto access) HWY_ATTR {
    const FloatVec g = hn::Mul(access.load(grad + i), scale), square = hn::Mul(g, g);
    const FloatVec moment = hn::MulAdd(old, access.load(v + i), hn::Mul(rest, hn::Add(square, floor)));
    access.store(moment, v + i);
    return hn::Div(square, moment);
  });
}

void vector_apply(double decay, double step, float* p, const float* grad, double grad_scale, const float* v,
                  int64_t n) {
  const FloatVec keep = set_rounded(decay), step_size = set_rounded(step * grad_scale);
  for_vectors(n, [&](int64_t i, auto access) HWY_ATTR {
    const FloatVec u = hn::Div(access.load(grad + i), hn::Sqrt(access.load(v + i)));
    access.store(hn::NegMulAdd(step_size, u, hn::Mul(access.load(p + i), keep)), p + i);
  });
}

}  // namespace
}  // namespace ingot::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ingot::kernels {
namespace {
HWY_EXPORT(squares);
HWY_EXPORT(update_squares);
HWY_EXPORT(apply);
HWY_EXPORT(vector_moment);
HWY_EXPORT(vector_apply);
}  // namespace

void adafactor_squares(const float* grad, double grad_scale, int64_t columns, int64_t row_begin, int64_t row_end,
                       float* row_sums, float* column_sums) {
  HWY_DYNAMIC_DISPATCH(squares)(grad, grad_scale, columns, row_begin, row_end, row_sums, column_sums);
}

double adafactor_update_squares(const float* grad, double grad_scale, const float* row_factors,
                                const float* column_factors, int64_t columns, int64_t row_begin, int64_t row_end) {
  return HWY_DYNAMIC_DISPATCH(update_squares)(grad, grad_scale, row_factors, column_factors, columns, row_begin,
                                              row_end);
}

void adafactor_apply(double decay, double step, float* p, const float* grad, double grad_scale,
                     const float* row_factors, const float* column_factors, int64_t columns, int64_t row_begin,
                     int64_t row_end) {
  HWY_DYNAMIC_DISPATCH(apply)
  (decay, step, p, grad, grad_scale, row_factors, column_factors, columns, row_begin, row_end);
}

double adafactor_vector_moment(const float* grad, double grad_scale, double beta2, double eps, float* v, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(vector_moment)(grad, grad_scale, beta2, eps, v, n);
}

void adafactor_vector_apply(double decay, double step, float* p, const float* grad, double grad_scale, const float* v,
                            int64_t n) {
  HWY_DYNAMIC_DISPATCH(vector_apply)(decay, step, p, grad, grad_scale, v, n);
}

}  // namespace ingot::kernels
#endif  // HWY_ONCE
