// What the vector kernels share: loads and stores of part of a vector that touch no other byte, loops over a row, and
// sums in a fixed order. Included once for each instruction set (see Highway's foreach_target.h).
#if defined(INGOT_KERNELS_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef INGOT_KERNELS_SIMD_INL_H_
#undef INGOT_KERNELS_SIMD_INL_H_
#else
#define INGOT_KERNELS_SIMD_INL_H_
#endif

#include <cstdint>
#include <cstring>
#include <limits>

#include "hwy/highway.h"

// Masked loads and stores that fault on no masked lane: AVX2 and better, and SVE.
#undef INGOT_SAFE_MASKS
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL || HWY_TARGET == HWY_SVE || \
    HWY_TARGET == HWY_SVE2 || HWY_TARGET == HWY_SVE_256 || HWY_TARGET == HWY_SVE2_128
#define INGOT_SAFE_MASKS 1
#else
#define INGOT_SAFE_MASKS 0
#endif

HWY_BEFORE_NAMESPACE();
namespace ingot::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using FloatTag = hn::ScalableTag<float>;
using FloatVec = hn::Vec<FloatTag>;

inline constexpr FloatTag kFloat{};

HWY_INLINE FloatVec set(float value) {
  return hn::Set(kFloat, value);
}
HWY_INLINE FloatVec set_rounded(double value) {
  return set(static_cast<float>(value));
}
HWY_INLINE int64_t lanes() {
  return static_cast<int64_t>(hn::Lanes(kFloat));
}

// The first `count` lanes from memory, the others zero. 0 < count < lanes().
HWY_INLINE FloatVec load_part(const float* from, int64_t count) {
#if INGOT_SAFE_MASKS
  return hn::MaskedLoad(hn::FirstN(kFloat, static_cast<size_t>(count)), kFloat, from);
#else
  HWY_ALIGN float buffer[hn::MaxLanes(FloatTag())] = {};
  std::memcpy(buffer, from, static_cast<size_t>(count) * sizeof(float));
  return hn::Load(kFloat, buffer);
#endif
}

HWY_INLINE void store_part(FloatVec value, float* to, int64_t count) {
#if INGOT_SAFE_MASKS
  hn::BlendedStore(value, hn::FirstN(kFloat, static_cast<size_t>(count)), kFloat, to);
#else
  HWY_ALIGN float buffer[hn::MaxLanes(FloatTag())];
  hn::Store(value, kFloat, buffer);
  std::memcpy(to, buffer, static_cast<size_t>(count) * sizeof(float));
#endif
}

// How a loop's body reads and writes at the place it is called for: a whole vector, or the row's last few lanes. `keep`
// makes the lanes beyond the end zero, for sums whose terms are not zero there by themselves.
struct WholeVector {
  HWY_INLINE FloatVec load(const float* from) const { return hn::LoadU(kFloat, from); }
  HWY_INLINE void store(FloatVec value, float* to) const { hn::StoreU(value, kFloat, to); }
  HWY_INLINE FloatVec keep(FloatVec value) const { return value; }
  HWY_INLINE FloatVec keep_or(FloatVec value, FloatVec) const { return value; }
};
struct PartVector {
  int64_t count;
  HWY_INLINE FloatVec load(const float* from) const { return load_part(from, count); }
  HWY_INLINE void store(FloatVec value, float* to) const { store_part(value, to, count); }
  HWY_INLINE FloatVec keep(FloatVec value) const {
    return hn::IfThenElseZero(hn::FirstN(kFloat, static_cast<size_t>(count)), value);
  }
  HWY_INLINE FloatVec keep_or(FloatVec value, FloatVec other) const {
    return hn::IfThenElse(hn::FirstN(kFloat, static_cast<size_t>(count)), value, other);
  }
};

// body(i, access) for each vector of [0, n).
template <class Body>
HWY_INLINE void for_vectors(int64_t n, Body body) {
  const int64_t step = lanes();
  int64_t i = 0;
  for (; i + step <= n; i += step) body(i, WholeVector{});
  if (i < n) body(i, PartVector{n - i});
}

HWY_INLINE float sum_of_lanes(FloatVec value) {
  return hn::GetLane(hn::SumOfLanes(kFloat, value));
}

// The sum of term(i, access) over the vectors of [0, n), four partial sums wide. The order depends on n alone.
template <class Term>
HWY_INLINE float sum_vectors(int64_t n, Term term) {
  const int64_t step = lanes();
  FloatVec sum0 = hn::Zero(kFloat), sum1 = sum0, sum2 = sum0, sum3 = sum0;
  int64_t i = 0;
  for (; i + 4 * step <= n; i += 4 * step) {
    sum0 = hn::Add(sum0, term(i, WholeVector{}));
    sum1 = hn::Add(sum1, term(i + step, WholeVector{}));
    sum2 = hn::Add(sum2, term(i + 2 * step, WholeVector{}));
    sum3 = hn::Add(sum3, term(i + 3 * step, WholeVector{}));
  }
  for (; i + step <= n; i += step) sum0 = hn::Add(sum0, term(i, WholeVector{}));
  if (i < n) {
    const PartVector part{n - i};
    sum1 = hn::Add(sum1, part.keep(term(i, part)));
  }
  return sum_of_lanes(hn::Add(hn::Add(sum0, sum1), hn::Add(sum2, sum3)));
}

// The largest of value(i, access) over [0, n), -infinity for n = 0. NaN may or may not win.
template <class Value>
HWY_INLINE float max_vectors(int64_t n, Value value) {
  const int64_t step = lanes();
  const FloatVec lowest = set(-std::numeric_limits<float>::infinity());
  FloatVec max0 = lowest, max1 = lowest;
  int64_t i = 0;
  for (; i + 2 * step <= n; i += 2 * step) {
    max0 = hn::Max(max0, value(i, WholeVector{}));
    max1 = hn::Max(max1, value(i + step, WholeVector{}));
  }
  for (; i + step <= n; i += step) max0 = hn::Max(max0, value(i, WholeVector{}));
  if (i < n) {
    const PartVector part{n - i};
    max1 = hn::Max(max1, part.keep_or(value(i, part), lowest));
  }
  return hn::GetLane(hn::MaxOfLanes(kFloat, hn::Max(max0, max1)));
}

// sum_vectors for two sums that share their operands: accumulate(i, access, a, b) adds its terms to a and b; terms must
// be zero in lanes beyond the end, which they are where each is a product with a loaded value.
template <class Accumulate>
HWY_INLINE void sum_vectors_twice(int64_t n, Accumulate accumulate, float& first, float& second) {
  const int64_t step = lanes();
  FloatVec a0 = hn::Zero(kFloat), a1 = a0, b0 = a0, b1 = a0;
  int64_t i = 0;
  for (; i + 2 * step <= n; i += 2 * step) {
    accumulate(i, WholeVector{}, a0, b0);
    accumulate(i + step, WholeVector{}, a1, b1);
  }
  for (; i + step <= n; i += step) accumulate(i, WholeVector{}, a0, b0);
  if (i < n) accumulate(i, PartVector{n - i}, a1, b1);
  first = sum_of_lanes(hn::Add(a0, a1));
  second = sum_of_lanes(hn::Add(b0, b1));
}

}  // namespace ingot::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // INGOT_KERNELS_SIMD_INL_H_
