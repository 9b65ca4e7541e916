#include "kernels/quantized/quantized.h"

#include <algorithm>
#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/quantized/quantized.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ingot::kernels::HWY_NAMESPACE {

// How far ahead weights are asked for, a line for each group of a usual size: arithmetic keeps the core from running
// ahead itself. Asking for each vector's is slower than not asking.
constexpr int64_t kBytesAhead = 4096;

using ByteTag = hn::Rebind<int8_t, FloatTag>;

HWY_INLINE FloatVec load_bytes(const int8_t* from) {
  const hn::RebindToSigned<FloatTag> words;
  return hn::ConvertTo(kFloat, hn::PromoteTo(words, hn::LoadU(ByteTag(), from)));
}
HWY_INLINE FloatVec load_bytes(const int8_t* from, WholeVector) {
  return load_bytes(from);
}
HWY_INLINE FloatVec load_bytes(const int8_t* from, PartVector part) {
  int8_t buffer[hn::MaxLanes(FloatTag())] = {};
  std::memcpy(buffer, from, static_cast<size_t>(part.count));
  return load_bytes(buffer);
}

// One output of kRows rows. Outputs go by one behind the other, so that the weights are one long stretch of memory. A
// group's products are summed first, then scaled: one multiplication a group.
template <int kRows>
HWY_INLINE void dot_products(const QuantizedProduct& args, int64_t row, int64_t output) {
  constexpr int kSums = 2, kUnroll = 4;
  const QuantizedMatrix& m = args.matrix;
  const int64_t inputs = m.inputs, groups = groups_of(inputs, m.group), step = lanes();
  const int8_t* values = m.values + output * inputs;
  const float* scales = m.scales + output * groups;
  const float* x = args.x + row * inputs;
  FloatVec totals[kRows];
#pragma GCC unroll 4
  for (int i = 0; i < kRows; ++i) totals[i] = hn::Zero(kFloat);
  for (int64_t group = 0, p = 0; group < groups; ++group) {
    const int64_t end = std::min(inputs, p + m.group);
    __builtin_prefetch(values + p + kBytesAhead);
    FloatVec sums[kRows][kSums];
#pragma GCC unroll 4
    for (int i = 0; i < kRows; ++i)
#pragma GCC unroll 4
      for (int s = 0; s < kSums; ++s) sums[i][s] = hn::Zero(kFloat);
    const auto add = [&](int64_t at_input, auto at, int s) HWY_ATTR {
      const FloatVec weight = load_bytes(values + at_input, at);
#pragma GCC unroll 4
      for (int i = 0; i < kRows; ++i) sums[i][s] = hn::MulAdd(at.load(x + i * inputs + at_input), weight, sums[i][s]);
    };
    for (; p + kUnroll * step <= end; p += kUnroll * step) {
#pragma GCC unroll 4
      for (int s = 0; s < kUnroll; ++s) add(p + s * step, WholeVector{}, s % kSums);
    }
    for (; p + step <= end; p += step) add(p, WholeVector{}, 0);
    if (p < end) add(p, PartVector{end - p}, 0);
    p = end;
    const FloatVec scale = set(scales[group]);
#pragma GCC unroll 4
    for (int i = 0; i < kRows; ++i) totals[i] = hn::MulAdd(hn::Add(sums[i][0], sums[i][1]), scale, totals[i]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < kRows; ++i) args.y[(row + i) * m.outputs + output] = sum_of_lanes(totals[i]);
}

template <int kRows>
HWY_NOINLINE void product_of_rows(const QuantizedProduct& args, int64_t row, int64_t begin, int64_t end) {
  for (int64_t output = begin; output < end; ++output) dot_products<kRows>(args, row, output);
}

void product(const QuantizedProduct& args, int64_t begin, int64_t end) {
  int64_t row = 0;
  for (; row + 4 <= args.rows; row += 4) product_of_rows<4>(args, row, begin, end);
  for (; row + 2 <= args.rows; row += 2) product_of_rows<2>(args, row, begin, end);
  if (row < args.rows) product_of_rows<1>(args, row, begin, end);
}

void rows(const QuantizedMatrix& m, const int32_t* ids, float* out, int64_t begin, int64_t end) {
  const int64_t groups = groups_of(m.inputs, m.group);
  for (int64_t r = begin; r < end; ++r)
    for (int64_t group = 0; group < groups; ++group) {
      const int64_t first = group * m.group;
      const int8_t* from = m.values + ids[r] * m.inputs + first;
      float* to = out + r * m.inputs + first;
      const FloatVec scale = set(m.scales[ids[r] * groups + group]);
      for_vectors(std::min(m.group, m.inputs - first),
                  [&](int64_t i, auto at) HWY_ATTR { at.store(hn::Mul(load_bytes(from + i, at), scale), to + i); });
    }
}

}  // namespace ingot::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ingot::kernels {
namespace {
HWY_EXPORT(product);
HWY_EXPORT(rows);
}  // namespace

void quantized_product(const QuantizedProduct& args, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(product)(args, begin, end);
}

void quantized_rows(const QuantizedMatrix& matrix, const int32_t* ids, float* out, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(rows)(matrix, ids, out, begin, end);
}

bool quantize(const float* weight, int64_t output_stride, int64_t input_stride, int64_t inputs, int64_t group,
              int8_t* values, float* scales, int64_t begin, int64_t end) {
  const int64_t groups = groups_of(inputs, group);
  bool finite = true;
  for (int64_t j = begin; j < end; ++j)
    for (int64_t g = 0; g < groups; ++g) {
      const int64_t first = g * group, last = std::min(inputs, first + group);
      const auto at = [&](int64_t p) { return weight[j * output_stride + p * input_stride]; };
      float largest = 0;
      for (int64_t p = first; p < last; ++p) largest = std::max(largest, std::abs(at(p)));
      for (int64_t p = first; p < last; ++p) finite = finite && std::isfinite(at(p));
      if (!finite) return false;
      // Where a scale would be no normal number, all weights are below it: zeros.
      const bool is_zero = largest / 127.0f < std::numeric_limits<float>::min();
      const float inverse = is_zero ? 0.0f : 127.0f / largest;
      scales[j * groups + g] = is_zero ? 0.0f : largest / 127.0f;
      for (int64_t p = first; p < last; ++p)
        values[j * inputs + p] = static_cast<int8_t>(std::clamp(std::nearbyint(at(p) * inverse), -127.0f, 127.0f));
    }
  return true;
}

}  // namespace ingot::kernels
#endif  // HWY_ONCE
