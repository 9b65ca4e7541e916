#include "kernels/norm/norm.h"

#include <algorithm>
#include <cmath>

#include "kernels/layout/layout.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/norm/norm.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/elementwise/dropout-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ingot::kernels::HWY_NAMESPACE {
namespace {

HWY_INLINE int64_t row_offset(const RowLayout& layout, int64_t row, int64_t n) {
  if (layout.outer_stride == 0) return row * n;
  return (row / layout.inner) * layout.outer_stride + (row % layout.inner) * n;
}

// to = dropout(from) on one row.
void drop_row(const ResidualDropout& dropout, int64_t row, const float* from, float* to, int64_t n) {
  HWY_ALIGN uint32_t buffer[kDropoutBits];
  const FloatVec p = set(dropout.p), scale = set(1.0f / (1.0f - dropout.p));
  for (int64_t begin = 0; begin < n; begin += kDropoutChunk) {
    const int64_t count = std::min(kDropoutChunk, n - begin);
    const int64_t first = dropout.stream.first + row * dropout.stream.row_length + begin;
    const uint32_t* bits = draw_bits(dropout.stream.key, dropout.stream.counter, first, count, buffer);
    for_vectors(count, [&](int64_t i, auto access) HWY_ATTR {
      access.store(apply_dropout(access.load(from + begin + i), bits + i, p, scale), to + begin + i);
    });
  }
}

// sum = x + dropout(delta) on one row.
void add_dropped_row(const ResidualDropout& dropout, int64_t row, const float* x, const float* delta, float* sum,
                     int64_t n) {
  HWY_ALIGN uint32_t buffer[kDropoutBits];
  const FloatVec p = set(dropout.p), scale = set(1.0f / (1.0f - dropout.p));
  for (int64_t begin = 0; begin < n; begin += kDropoutChunk) {
    const int64_t count = std::min(kDropoutChunk, n - begin);
    const int64_t first = dropout.stream.first + row * dropout.stream.row_length + begin;
    const uint32_t* bits = draw_bits(dropout.stream.key, dropout.stream.counter, first, count, buffer);
    for_vectors(count, [&](int64_t i, auto access) HWY_ATTR {
      const FloatVec kept = apply_dropout(access.load(delta + begin + i), bits + i, p, scale);
      access.store(hn::Add(access.load(x + begin + i), kept), sum + begin + i);
    });
  }
}

// The row to normalise: x's, or the residual's sum, written first.
const float* residual_row(const NormForward& args, int64_t row) {
  const float* x = args.x + row_offset(args.x_rows, row, args.n);
  if (args.delta == nullptr) return x;
  const float* delta = args.delta + row * args.n;
  float* sum = args.sum + row * args.n;
  if (args.dropout.p > 0) {
    add_dropped_row(args.dropout, row, x, delta, sum, args.n);
  } else {
    for_vectors(args.n, [&](int64_t i, auto access)
                            HWY_ATTR { access.store(hn::Add(access.load(x + i), access.load(delta + i)), sum + i); });
  }
  if (args.sum_stored_as != DType::f32) round_through(args.sum_stored_as, sum, sum, args.n);
  return sum;
}

// y = (x - shift) * factor * weight + bias
void scale_row(const NormForward& args, const float* x, float shift, float factor, float* y) {
  const FloatVec minus = set(shift), times = set(factor);
  const float* weight = args.weight;
  const float* bias = args.bias;
  const auto normal = [&](int64_t i, auto access)
                          HWY_ATTR { return hn::Mul(hn::Sub(access.load(x + i), minus), times); };
  if (weight != nullptr && bias != nullptr) {
    for_vectors(args.n, [&](int64_t i, auto access) HWY_ATTR {
      access.store(hn::MulAdd(normal(i, access), access.load(weight + i), access.load(bias + i)), y + i);
    });
  } else if (weight != nullptr) {
    for_vectors(args.n, [&](int64_t i, auto access)
                            HWY_ATTR { access.store(hn::Mul(normal(i, access), access.load(weight + i)), y + i); });
  } else if (bias != nullptr) {
    for_vectors(args.n, [&](int64_t i, auto access)
                            HWY_ATTR { access.store(hn::Add(normal(i, access), access.load(bias + i)), y + i); });
  } else {
    for_vectors(args.n, [&](int64_t i, auto access) HWY_ATTR { access.store(normal(i, access), y + i); });
  }
}

template <bool kCentered>
void norm_rows(const NormForward& args, int64_t row_begin, int64_t row_end) {
  const auto count = static_cast<float>(args.n);
  for (int64_t row = row_begin; row < row_end; ++row) {
    const float* x = residual_row(args, row);
    float mean = 0;
    if (kCentered) {
      mean = sum_vectors(args.n, [&](int64_t i, auto access) HWY_ATTR { return access.load(x + i); }) / count;
    }
    const FloatVec shift = set(mean);
    const float squares = sum_vectors(args.n, [&](int64_t i, auto access) HWY_ATTR {
      const FloatVec d = kCentered ? hn::Sub(access.load(x + i), shift) : access.load(x + i);
      return hn::Mul(d, d);
    });
    const float rstd = 1.0f / std::sqrt(squares / count + args.eps);
    scale_row(args, x, mean, rstd, args.y + row_offset(args.y_rows, row, args.n));
    if (kCentered && args.mean != nullptr) args.mean[row] = mean;
    if (args.rstd != nullptr) args.rstd[row] = rstd;
  }
}

// One row of a gradient: its memory and its statistics.
struct GradRow {
  const float* x;
  const float* dy;
  const float* residual;  // or null
  float* dx;
  float mean, rstd;
  float mean_g, mean_gx;  // over the row, of g = dy * weight and of g * normal(x)
};

template <bool kWeight>
HWY_INLINE void fill_means(const float* weight, int64_t n, GradRow& row) {
  const FloatVec mean = set(row.mean), rstd = set(row.rstd);
  const float *x = row.x, *dy = row.dy;
  float sum_g = 0, sum_gx = 0;
  sum_vectors_twice(
      n,
      [&](int64_t i, auto access, FloatVec& total_g, FloatVec& total_gx) HWY_ATTR {
        FloatVec g = access.load(dy + i);
        if (kWeight) g = hn::Mul(g, access.load(weight + i));
        total_g = hn::Add(total_g, g);
        total_gx = hn::MulAdd(g, hn::Mul(hn::Sub(access.load(x + i), mean), rstd), total_gx);
      },
      sum_g, sum_gx);
  row.mean_g = sum_g / static_cast<float>(n);
  row.mean_gx = sum_gx / static_cast<float>(n);
}

template <bool kCentered, bool kWeight>
HWY_INLINE GradRow grad_row(const NormBackward& args, int64_t r) {
  GradRow row{args.x + row_offset(args.x_rows, r, args.n),
              args.dy + row_offset(args.dy_rows, r, args.n),
              args.d_residual == nullptr ? nullptr : args.d_residual + r * args.n,
              args.dx + row_offset(args.dx_rows, r, args.n),
              kCentered ? args.mean[r] : 0.0f,
              args.rstd[r],
              0,
              0};
  fill_means<kWeight>(args.weight, args.n, row);
  if (!kCentered) row.mean_g = 0;
  return row;
}

// dx = rstd * (g - mean(g) - normal(x) * mean(g * normal(x))) + residual, and the sums of weight and bias, for kRows
// rows at once, so that the sums are read and written less often; they add up in the order of rows. Operands are read
// before dx is written, which may lie over any of them.
template <bool kWeight, int kRows>
void finish_rows(const NormBackward& args, const GradRow* rows) {
  const GradRow first = rows[0], second = rows[kRows - 1];  // copies: vector stores might change what is referred to
  const float* weight = args.weight;
  float *d_weight = args.d_weight, *d_bias = args.d_bias;
  const auto normal_of = [&](const GradRow& row, int64_t i, auto access) HWY_ATTR {
    return hn::Mul(hn::Sub(access.load(row.x + i), set(row.mean)), set(row.rstd));
  };
  const auto finish = [&](const GradRow& row, FloatVec dy, FloatVec normal, int64_t i, auto access) HWY_ATTR {
    const FloatVec g = kWeight ? hn::Mul(dy, access.load(weight + i)) : dy;
    const FloatVec centered = hn::Sub(hn::Sub(g, set(row.mean_g)), hn::Mul(normal, set(row.mean_gx)));
    FloatVec dx = hn::Mul(centered, set(row.rstd));
    if (row.residual != nullptr) dx = hn::Add(dx, access.load(row.residual + i));
    access.store(dx, row.dx + i);
  };
  for_vectors(args.n, [&](int64_t i, auto access) HWY_ATTR {
    const FloatVec dy0 = access.load(first.dy + i), normal0 = normal_of(first, i, access);
    const FloatVec dy1 = access.load(second.dy + i), normal1 = normal_of(second, i, access);
    if (d_weight != nullptr) {
      FloatVec sum = hn::MulAdd(dy0, normal0, access.load(d_weight + i));
      if (kRows == 2) sum = hn::MulAdd(dy1, normal1, sum);
      access.store(sum, d_weight + i);
    }
    if (d_bias != nullptr) {
      FloatVec sum = hn::Add(access.load(d_bias + i), dy0);
      if (kRows == 2) sum = hn::Add(sum, dy1);
      access.store(sum, d_bias + i);
    }
    finish(first, dy0, normal0, i, access);
    if (kRows == 2) finish(second, dy1, normal1, i, access);
  });
}

// The gradient of the residual's addend.
void delta_row(const NormBackward& args, int64_t r, const float* dx) {
  if (args.d_delta == nullptr) return;
  float* d_delta = args.d_delta + r * args.n;
  if (args.dropout.p > 0) return drop_row(args.dropout, r, dx, d_delta, args.n);
  std::copy_n(dx, args.n, d_delta);
}

template <bool kCentered, bool kWeight>
void grad_rows_as(const NormBackward& args, int64_t row_begin, int64_t row_end) {
  if (args.d_weight != nullptr) std::fill_n(args.d_weight, args.n, 0.0f);
  if (args.d_bias != nullptr) std::fill_n(args.d_bias, args.n, 0.0f);
  int64_t r = row_begin;
  for (; r + 2 <= row_end; r += 2) {
    const GradRow rows[] = {grad_row<kCentered, kWeight>(args, r), grad_row<kCentered, kWeight>(args, r + 1)};
    finish_rows<kWeight, 2>(args, rows);
    delta_row(args, r, rows[0].dx);
    delta_row(args, r + 1, rows[1].dx);
  }
  if (r == row_end) return;
  const GradRow last = grad_row<kCentered, kWeight>(args, r);
  finish_rows<kWeight, 1>(args, &last);
  delta_row(args, r, last.dx);
}

template <bool kCentered>
void grad_rows(const NormBackward& args, int64_t row_begin, int64_t row_end) {
  if (args.weight != nullptr) return grad_rows_as<kCentered, true>(args, row_begin, row_end);
  grad_rows_as<kCentered, false>(args, row_begin, row_end);
}

void forward(const NormForward& args, bool centered, int64_t row_begin, int64_t row_end) {
  if (centered) return norm_rows<true>(args, row_begin, row_end);
  norm_rows<false>(args, row_begin, row_end);
}

void backward(const NormBackward& args, bool centered, int64_t row_begin, int64_t row_end) {
  if (centered) return grad_rows<true>(args, row_begin, row_end);
  grad_rows<false>(args, row_begin, row_end);
}

}  // namespace
}  // namespace ingot::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ingot::kernels {
namespace {
HWY_EXPORT(forward);
HWY_EXPORT(backward);
}  // namespace

void layer_norm(const NormForward& args, int64_t row_begin, int64_t row_end) {
  HWY_DYNAMIC_DISPATCH(forward)(args, true, row_begin, row_end);
}
void rms_norm(const NormForward& args, int64_t row_begin, int64_t row_end) {
  HWY_DYNAMIC_DISPATCH(forward)(args, false, row_begin, row_end);
}
void layer_norm_grad(const NormBackward& args, int64_t row_begin, int64_t row_end) {
  HWY_DYNAMIC_DISPATCH(backward)(args, true, row_begin, row_end);
}
void rms_norm_grad(const NormBackward& args, int64_t row_begin, int64_t row_end) {
  HWY_DYNAMIC_DISPATCH(backward)(args, false, row_begin, row_end);
}

}  // namespace ingot::kernels
#endif  // HWY_ONCE
