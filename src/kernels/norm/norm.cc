#include "kernels/norm/norm.h"

#include <algorithm>
#include <cmath>

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

// One row of a gradient: the pointers and statistics that its two passes share.
struct GradRow {
  const float* x;
  const float* dy;
  const float* residual;  // or null
  float* dx;
  FloatVec mean, rstd;
  template <class Access>
  HWY_INLINE FloatVec normal(int64_t i, Access access) const {
    return hn::Mul(hn::Sub(access.load(x + i), mean), rstd);
  }
};

// The means over the row of g = dy * weight and of g * normal(x).
template <bool kWeight>
void grad_sums(const float* weight, const GradRow& row, int64_t n, float& mean_g, float& mean_gx) {
  sum_vectors_twice(
      n,
      [&](int64_t i, auto access, FloatVec& sum_g, FloatVec& sum_gx) HWY_ATTR {
        FloatVec g = access.load(row.dy + i);
        if (kWeight) g = hn::Mul(g, access.load(weight + i));
        sum_g = hn::Add(sum_g, g);
        sum_gx = hn::MulAdd(g, row.normal(i, access), sum_gx);
      },
      mean_g, mean_gx);
  mean_g /= static_cast<float>(n);
  mean_gx /= static_cast<float>(n);
}

// dx = rstd * (g - mean(g) - normal(x) * mean(g * normal(x))) + residual, and the sums of weight and bias. Operands are
// read before dx is written, which may lie over any of them.
template <bool kWeight>
void grad_row(const NormBackward& args, const GradRow row, float mean_g, float mean_gx) {
  const FloatVec shift = set(mean_g), slope = set(mean_gx);
  // Copies: the compiler must take vector stores to change what is read through a reference.
  const float* weight = args.weight;
  float *d_weight = args.d_weight, *d_bias = args.d_bias;
  for_vectors(args.n, [&](int64_t i, auto access) HWY_ATTR {
    const FloatVec dy = access.load(row.dy + i), normal = row.normal(i, access);
    if (d_weight != nullptr) access.store(hn::MulAdd(dy, normal, access.load(d_weight + i)), d_weight + i);
    if (d_bias != nullptr) access.store(hn::Add(dy, access.load(d_bias + i)), d_bias + i);
    const FloatVec g = kWeight ? hn::Mul(dy, access.load(weight + i)) : dy;
    FloatVec dx = hn::Mul(hn::Sub(hn::Sub(g, shift), hn::Mul(normal, slope)), row.rstd);
    if (row.residual != nullptr) dx = hn::Add(dx, access.load(row.residual + i));
    access.store(dx, row.dx + i);
  });
}

template <bool kCentered, bool kWeight>
void grad_rows_as(const NormBackward& args, int64_t row_begin, int64_t row_end) {
  if (args.d_weight != nullptr) std::fill_n(args.d_weight, args.n, 0.0f);
  if (args.d_bias != nullptr) std::fill_n(args.d_bias, args.n, 0.0f);
  for (int64_t r = row_begin; r < row_end; ++r) {
    const GradRow row{args.x + row_offset(args.x_rows, r, args.n),
                      args.dy + row_offset(args.dy_rows, r, args.n),
                      args.d_residual == nullptr ? nullptr : args.d_residual + r * args.n,
                      args.dx + row_offset(args.dx_rows, r, args.n),
                      set(kCentered ? args.mean[r] : 0.0f),
                      set(args.rstd[r])};
    float mean_g = 0, mean_gx = 0;
    grad_sums<kWeight>(args.weight, row, args.n, mean_g, mean_gx);
    grad_row<kWeight>(args, row, kCentered ? mean_g : 0.0f, mean_gx);
    if (args.d_delta == nullptr) continue;
    if (args.dropout.p > 0) {
      drop_row(args.dropout, r, row.dx, args.d_delta + r * args.n, args.n);
    } else {
      std::copy_n(row.dx, args.n, args.d_delta + r * args.n);
    }
  }
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
