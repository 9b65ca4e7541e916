#include "kernels/rope/rope.h"

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/rope/rope.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ingot::kernels::HWY_NAMESPACE {
namespace {

// (first, second) turned by the angles of one position.
template <bool kInverse>
HWY_INLINE void rotate_head(const float* x, const float* cos, const float* sin, int64_t half, float* y) {
  for_vectors(half, [&](int64_t i, auto access) HWY_ATTR {
    const FloatVec c = access.load(cos + i), s = access.load(sin + i);
    const FloatVec first = access.load(x + i), second = access.load(x + half + i);
    if (kInverse) {
      access.store(hn::MulAdd(second, s, hn::Mul(first, c)), y + i);
      access.store(hn::NegMulAdd(first, s, hn::Mul(second, c)), y + half + i);
    } else {
      access.store(hn::NegMulAdd(second, s, hn::Mul(first, c)), y + i);
      access.store(hn::MulAdd(first, s, hn::Mul(second, c)), y + half + i);
    }
  });
}

template <bool kInverse>
void rotate_rows_as(const Rope& args, int64_t row_begin, int64_t row_end) {
  const int64_t half = args.rotary_dim / 2, dim = args.head_dim;
  for (int64_t row = row_begin; row < row_end; ++row) {
    const float* x = args.x + row * args.x_stride;
    float* y = args.y + row * args.y_stride;
    const int64_t at = args.positions[row] * half;
    for (int64_t head = 0; head < args.rotated_heads; ++head) {
      rotate_head<kInverse>(x + head * dim, args.cos + at, args.sin + at, half, y + head * dim);
      if (x == y || args.rotary_dim == dim) continue;
      std::copy(x + head * dim + args.rotary_dim, x + (head + 1) * dim, y + head * dim + args.rotary_dim);
    }
    if (x != y) std::copy(x + args.rotated_heads * dim, x + args.heads * dim, y + args.rotated_heads * dim);
  }
}

void rotate_rows(const Rope& args, int64_t row_begin, int64_t row_end) {
  if (args.inverse) return rotate_rows_as<true>(args, row_begin, row_end);
  rotate_rows_as<false>(args, row_begin, row_end);
}

}  // namespace
}  // namespace ingot::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ingot::kernels {
namespace {
HWY_EXPORT(rotate_rows);
}  // namespace

void rope_table(std::span<const double> inverse_frequencies, double scale, float* cos, float* sin,
                int64_t position_begin, int64_t position_end) {
  const auto width = static_cast<int64_t>(inverse_frequencies.size());
  for (int64_t position = position_begin; position < position_end; ++position) {
    for (int64_t i = 0; i < width; ++i) {
      const double angle = static_cast<double>(position) * inverse_frequencies[static_cast<size_t>(i)];
      cos[position * width + i] = static_cast<float>(scale * std::cos(angle));
      sin[position * width + i] = static_cast<float>(scale * std::sin(angle));
    }
  }
}

void rope(const Rope& args, int64_t row_begin, int64_t row_end) {
  HWY_DYNAMIC_DISPATCH(rotate_rows)(args, row_begin, row_end);
}

}  // namespace ingot::kernels
#endif  // HWY_ONCE
