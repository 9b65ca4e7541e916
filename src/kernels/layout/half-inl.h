// Conversions between f32 and the 16-bit formats, as bit patterns in uint16_t: by the vector and by the row. Widening
// is exact; narrowing rounds to nearest even, NaN stays NaN, and what lies beyond the range becomes infinite. Included
// once for each instruction set (see Highway's foreach_target.h).
#if defined(INGOT_KERNELS_HALF_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef INGOT_KERNELS_HALF_INL_H_
#undef INGOT_KERNELS_HALF_INL_H_
#else
#define INGOT_KERNELS_HALF_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "base/dtype.h"
#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ingot::kernels::HWY_NAMESPACE {

using HalfTag = hn::Rebind<uint16_t, FloatTag>;
using HalfVec = hn::Vec<HalfTag>;
inline constexpr HalfTag kHalf{};

HWY_INLINE HalfVec bf16_of(FloatVec x) {
  const hn::RebindToSigned<FloatTag> whole;
  const hn::RebindToUnsigned<FloatTag> words;
  const auto bits = hn::BitCast(words, x);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(words, 1));
  const auto rounded = hn::ShiftRight<16>(hn::Add(hn::Add(bits, hn::Set(words, 0x7fff)), odd));
  const auto quiet = hn::Or(hn::ShiftRight<16>(bits), hn::Set(words, 0x40));
  const auto is_nan = hn::RebindMask(words, hn::IsNaN(x));
  return hn::DemoteTo(kHalf, hn::BitCast(whole, hn::IfThenElse(is_nan, quiet, rounded)));
}

// Lanes of two vectors rounded to bf16 side by side: (even, odd) in the low and high half of each word. Of NaN, what
// arithmetic makes is kept (not every payload).
HWY_INLINE auto bf16_pairs_of(FloatVec even, FloatVec odd) {
  const hn::RebindToUnsigned<FloatTag> words;
  const auto rounded = [&](FloatVec x) HWY_ATTR {
    const auto bits = hn::BitCast(words, x);
    const auto tie = hn::And(hn::ShiftRight<16>(bits), hn::Set(words, 1));
    return hn::Add(hn::Add(bits, hn::Set(words, 0x7fff)), tie);
  };
  return hn::Or(hn::ShiftRight<16>(rounded(even)), hn::And(rounded(odd), hn::Set(words, 0xffff0000)));
}
using PairVec = decltype(bf16_pairs_of(FloatVec(), FloatVec()));

// One half of each pair.
HWY_INLINE HalfVec even_of(PairVec pairs) {
  const hn::RebindToUnsigned<FloatTag> words;
  const hn::RebindToSigned<FloatTag> whole;
  return hn::DemoteTo(kHalf, hn::BitCast(whole, hn::And(pairs, hn::Set(words, 0xffff))));
}
HWY_INLINE HalfVec odd_of(PairVec pairs) {
  const hn::RebindToSigned<FloatTag> whole;
  return hn::DemoteTo(kHalf, hn::BitCast(whole, hn::ShiftRight<16>(pairs)));
}

HWY_INLINE FloatVec float_of_bf16(HalfVec x) {
  const hn::RebindToUnsigned<FloatTag> words;
  return hn::BitCast(kFloat, hn::ShiftLeft<16>(hn::PromoteTo(words, x)));
}

// Highway's own conversions to f16 truncate where the CPU has none; these targets have them and round to nearest even.
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
HWY_INLINE HalfVec f16_of(FloatVec x) {
  const hn::Rebind<hwy::float16_t, FloatTag> f16;
  return hn::BitCast(kHalf, hn::DemoteTo(f16, x));
}
HWY_INLINE FloatVec float_of_f16(HalfVec x) {
  const hn::Rebind<hwy::float16_t, FloatTag> f16;
  return hn::PromoteTo(kFloat, hn::BitCast(f16, x));
}
#else
HWY_INLINE HalfVec f16_of(FloatVec x) {
  HWY_ALIGN float in[hn::MaxLanes(FloatTag())];
  HWY_ALIGN uint16_t out[hn::MaxLanes(FloatTag())];
  hn::Store(x, kFloat, in);
  std::transform(in, in + lanes(), out, f16_from_float);
  return hn::LoadU(kHalf, out);
}
HWY_INLINE FloatVec float_of_f16(HalfVec x) {
  HWY_ALIGN uint16_t in[hn::MaxLanes(FloatTag())];
  HWY_ALIGN float out[hn::MaxLanes(FloatTag())];
  hn::StoreU(x, kHalf, in);
  std::transform(in, in + lanes(), out, float_from_f16);
  return hn::Load(kFloat, out);
}
#endif

// body(from, to) for whole vectors; the last part goes through buffers, so that every element meets the same
// instructions.
template <class From, class To, class Body>
HWY_INLINE void convert_vectors(const From* from, To* to, int64_t n, Body body) {
  const int64_t step = lanes();
  int64_t i = 0;
  for (; i + step <= n; i += step) body(from + i, to + i);
  if (i == n) return;
  HWY_ALIGN From in[hn::MaxLanes(FloatTag())] = {};
  HWY_ALIGN To out[hn::MaxLanes(FloatTag())];
  std::memcpy(in, from + i, static_cast<size_t>(n - i) * sizeof(From));
  body(in, out);
  std::memcpy(to + i, out, static_cast<size_t>(n - i) * sizeof(To));
}

// function(vector) of n floats to bf16 or f16. `to` may begin where `from` does.
template <class Function>
HWY_INLINE void narrow_each(const float* from, DType dtype, uint16_t* to, int64_t n, Function function) {
  if (dtype == DType::bf16)
    convert_vectors(from, to, n, [&](const float* a, uint16_t* b) HWY_ATTR {
      hn::StoreU(bf16_of(function(hn::LoadU(kFloat, a))), kHalf, b);
    });
  else
    convert_vectors(from, to, n, [&](const float* a, uint16_t* b) HWY_ATTR {
      hn::StoreU(f16_of(function(hn::LoadU(kFloat, a))), kHalf, b);
    });
}
// n floats to bf16 or f16.
HWY_INLINE void narrow(const float* from, DType dtype, uint16_t* to, int64_t n) {
  narrow_each(from, dtype, to, n, [](FloatVec x) HWY_ATTR { return x; });
}

// n of bf16 or f16 to floats.
HWY_INLINE void widen(const uint16_t* from, DType dtype, float* to, int64_t n) {
  if (dtype == DType::bf16)
    convert_vectors(from, to, n, [](const uint16_t* a, float* b) HWY_ATTR {
      hn::StoreU(float_of_bf16(hn::LoadU(kHalf, a)), kFloat, b);
    });
  else
    convert_vectors(from, to, n, [](const uint16_t* a, float* b) HWY_ATTR {
      hn::StoreU(float_of_f16(hn::LoadU(kHalf, a)), kFloat, b);
    });
}

}  // namespace ingot::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // INGOT_KERNELS_HALF_INL_H_
