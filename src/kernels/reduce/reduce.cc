#include "kernels/reduce/reduce.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/reduce/reduce.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ingot::kernels::HWY_NAMESPACE {
namespace {

// term(v) summed over [0, n), in double, four partial sums wide.
template <class Term>
HWY_INLINE double sum_in_double(const float* x, int64_t n, Term term) {
  const hn::ScalableTag<double> wide;
  const hn::Rebind<float, decltype(wide)> narrow;
  const int64_t step = static_cast<int64_t>(hn::Lanes(wide));
  auto sum0 = hn::Zero(wide), sum1 = sum0, sum2 = sum0, sum3 = sum0;
  const auto load = [&](int64_t i) HWY_ATTR { return hn::PromoteTo(wide, hn::LoadU(narrow, x + i)); };
  // The conversion fills the window that would otherwise look ahead in memory. Fetching beyond the end does no harm.
  constexpr int64_t kAhead = 4096 / sizeof(float);
  int64_t i = 0;
  for (; i + 4 * step <= n; i += 4 * step) {
    // Not through a function: the compiler takes one that only prefetches for one that does nothing.
    __builtin_prefetch(x + i + kAhead);
    __builtin_prefetch(x + i + 2 * step + kAhead);
    sum0 = term(load(i), sum0);
    sum1 = term(load(i + step), sum1);
    sum2 = term(load(i + 2 * step), sum2);
    sum3 = term(load(i + 3 * step), sum3);
  }
  for (; i + step <= n; i += step) sum0 = term(load(i), sum0);
  if (i < n) {
    HWY_ALIGN float buffer[hn::MaxLanes(wide)] = {};
    std::memcpy(buffer, x + i, static_cast<size_t>(n - i) * sizeof(float));
    sum1 = term(hn::PromoteTo(wide, hn::LoadU(narrow, buffer)), sum1);
  }
  return hn::GetLane(hn::SumOfLanes(wide, hn::Add(hn::Add(sum0, sum1), hn::Add(sum2, sum3))));
}

double plain_sum(const float* x, int64_t n) {
  return sum_in_double(x, n, [](auto value, auto sum) HWY_ATTR { return hn::Add(sum, value); });
}
double square_sum(const float* x, int64_t n) {
  return sum_in_double(x, n, [](auto value, auto sum) HWY_ATTR { return hn::MulAdd(value, value, sum); });
}

float largest_magnitude(const float* x, int64_t n) {
  if (n == 0) return 0;
  // Magnitudes as integers order as the floats do, and every NaN is above infinity.
  const hn::RebindToSigned<FloatTag> whole;
  auto largest = hn::Zero(whole);
  const auto mask = hn::Set(whole, 0x7fffffff);
  for_vectors(n, [&](int64_t i, auto access)
                     HWY_ATTR { largest = hn::Max(largest, hn::And(hn::BitCast(whole, access.load(x + i)), mask)); });
  return hn::GetLane(hn::BitCast(kFloat, hn::MaxOfLanes(whole, largest)));
}

int64_t nonfinite_index(const float* x, int64_t n) {
  // A block at a time: whether, and only then where.
  constexpr int64_t kBlock = 4096;
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const int64_t end = std::min(n, begin + kBlock);
    if (std::isfinite(largest_magnitude(x + begin, end - begin))) continue;
    for (int64_t i = begin; i < end; ++i) {
      if (!std::isfinite(x[i])) return i;
    }
  }
  return -1;
}

void sum_of_columns(const float* x, int64_t stride, int64_t columns, int64_t row_begin, int64_t row_end, float* out) {
  // A panel of columns stays in L1 while the rows pass; four rows at once, added in their order.
  constexpr int64_t kPanel = 1024;
  for (int64_t panel = 0; panel < columns; panel += kPanel) {
    const int64_t width = std::min(kPanel, columns - panel);
    float* to = out + panel;
    std::fill_n(to, width, 0.0f);
    int64_t row = row_begin;
    for (; row + 4 <= row_end; row += 4) {
      const float* from = x + row * stride + panel;
      for_vectors(width, [&](int64_t i, auto access) HWY_ATTR {
        FloatVec total = hn::Add(access.load(to + i), access.load(from + i));
        total = hn::Add(total, access.load(from + stride + i));
        total = hn::Add(total, access.load(from + 2 * stride + i));
        access.store(hn::Add(total, access.load(from + 3 * stride + i)), to + i);
      });
    }
    for (; row < row_end; ++row) {
      const float* from = x + row * stride + panel;
      for_vectors(width, [&](int64_t i, auto access)
                             HWY_ATTR { access.store(hn::Add(access.load(to + i), access.load(from + i)), to + i); });
    }
  }
}

void sum_of_rows(const float* x, int64_t stride, int64_t columns, int64_t row_begin, int64_t row_end, float* out) {
  for (int64_t row = row_begin; row < row_end; ++row) {
    const float* from = x + row * stride;
    out[row] = sum_vectors(columns, [&](int64_t i, auto access) HWY_ATTR { return access.load(from + i); });
  }
}

void sum_of_partials(const float* partials, int64_t parts, int64_t columns, int64_t begin, int64_t end, bool accumulate,
                     float* out) {
  for_vectors(end - begin, [&](int64_t i, auto access) HWY_ATTR {
    const float* from = partials + begin + i;
    FloatVec total = parts > 0 ? access.load(from) : hn::Zero(kFloat);
    for (int64_t p = 1; p < parts; ++p) total = hn::Add(total, access.load(from + p * columns));
    if (accumulate) total = hn::Add(access.load(out + begin + i), total);
    access.store(total, out + begin + i);
  });
}

}  // namespace
}  // namespace ingot::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ingot::kernels {
namespace {
HWY_EXPORT(plain_sum);
HWY_EXPORT(square_sum);
HWY_EXPORT(largest_magnitude);
HWY_EXPORT(nonfinite_index);
HWY_EXPORT(sum_of_columns);
HWY_EXPORT(sum_of_rows);
HWY_EXPORT(sum_of_partials);

// The offset of element `index` (row-major) of a shape.
int64_t strided_offset(const Shape& shape, const Shape& strides, int64_t index) {
  int64_t offset = 0;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    offset += (index % shape[axis]) * strides[axis];
    index /= shape[axis];
  }
  return offset;
}
}  // namespace

double sum(const float* x, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(plain_sum)(x, n);
}
double sum_squares(const float* x, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(square_sum)(x, n);
}
float max_abs(const float* x, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(largest_magnitude)(x, n);
}
int64_t first_nonfinite(const float* x, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(nonfinite_index)(x, n);
}

void column_sums(const float* x, int64_t stride, int64_t columns, int64_t row_begin, int64_t row_end, float* out) {
  HWY_DYNAMIC_DISPATCH(sum_of_columns)(x, stride, columns, row_begin, row_end, out);
}
void row_sums(const float* x, int64_t stride, int64_t columns, int64_t row_begin, int64_t row_end, float* out) {
  HWY_DYNAMIC_DISPATCH(sum_of_rows)(x, stride, columns, row_begin, row_end, out);
}
void add_partials(const float* partials, int64_t parts, int64_t columns, int64_t column_begin, int64_t column_end,
                  bool accumulate, float* out) {
  HWY_DYNAMIC_DISPATCH(sum_of_partials)(partials, parts, columns, column_begin, column_end, accumulate, out);
}

void strided_sum(const float* x, const StridedSum& shape, int64_t out_begin, int64_t out_end, float* out) {
  INGOT_CHECK(shape.kept.rank() == shape.kept_strides.rank() && shape.reduced.rank() == shape.reduced_strides.rank(),
              "shapes {} and {} with strides {} and {}", shape.kept.to_string(), shape.reduced.to_string(),
              shape.kept_strides.to_string(), shape.reduced_strides.to_string());
  const int64_t terms = shape.reduced.elements();
  for (int64_t k = out_begin; k < out_end; ++k) {
    const float* from = x + strided_offset(shape.kept, shape.kept_strides, k);
    double total = 0;
    for (int64_t r = 0; r < terms; ++r) total += from[strided_offset(shape.reduced, shape.reduced_strides, r)];
    out[k] = static_cast<float>(total);
  }
}

}  // namespace ingot::kernels
#endif  // HWY_ONCE
