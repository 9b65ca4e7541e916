#include "kernels/random/normal.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/random/normal.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/elementwise/dropout-inl.h"
#include "kernels/elementwise/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ingot::kernels::HWY_NAMESPACE {

// The upper 24 bits as an integer, exact in fp32.
HWY_INLINE FloatVec upper_bits(hn::Vec<hn::RebindToUnsigned<FloatTag>> words) {
  return hn::ConvertTo(kFloat, hn::BitCast(kInt, hn::ShiftRight<8>(words)));
}

// cos and sin of 2 pi t for t in [0, 1]: a quarter turn at a time, then Cephes' polynomials on [-pi/4, pi/4].
HWY_INLINE void cos_sin_of_turns(FloatVec t, FloatVec& cosine, FloatVec& sine) {
  const FloatVec quarters = hn::Round(hn::Mul(t, set(4.0f)));
  const FloatVec x = hn::Mul(hn::NegMulAdd(quarters, set(0.25f), t), set(6.283185307179586f));
  const FloatVec z = hn::Mul(x, x);
  const FloatVec sin_x =
      hn::MulAdd(hn::Mul(polynomial(z, -1.9515295891e-4f, 8.3321608736e-3f, -1.6666654611e-1f), z), x, x);
  const FloatVec cos_x =
      polynomial(z, 2.443315711809948e-5f, -1.388731625493765e-3f, 4.166664568298827e-2f, -0.5f, 1.0f);
  const auto quadrant = hn::ConvertTo(kInt, quarters);
  const auto one = hn::Set(kInt, 1), two = hn::Set(kInt, 2);
  const auto swapped = hn::MaskFromVec(hn::BitCast(kFloat, hn::VecFromMask(kInt, hn::Eq(hn::And(quadrant, one), one))));
  const auto sign_of = [&](auto q) { return hn::BitCast(kFloat, hn::ShiftLeft<30>(hn::And(q, two))); };
  cosine = hn::Xor(hn::IfThenElse(swapped, sin_x, cos_x), sign_of(hn::Add(quadrant, one)));
  sine = hn::Xor(hn::IfThenElse(swapped, cos_x, sin_x), sign_of(quadrant));
}

// Each pair of words becomes a pair of numbers.
HWY_INLINE void normal_from_bits(const uint32_t* bits, int64_t count, float deviation, float* out) {
  const hn::RebindToUnsigned<FloatTag> words;
  for (int64_t i = 0; i < count; i += 2 * lanes()) {
    hn::Vec<decltype(words)> first, second;
    hn::LoadInterleaved2(words, bits + i, first, second);
    const FloatVec uniform = hn::Mul(hn::Add(upper_bits(first), set(1.0f)), set(0x1p-24f));  // (0, 1]
    const FloatVec radius = hn::Mul(hn::Sqrt(hn::Mul(vector_log(uniform), set(-2.0f))), set(deviation));
    FloatVec cosine, sine;
    cos_sin_of_turns(hn::Mul(upper_bits(second), set(0x1p-24f)), cosine, sine);
    hn::StoreInterleaved2(hn::Mul(radius, cosine), hn::Mul(radius, sine), kFloat, out + i);
  }
}

void fill_range(uint64_t key, int64_t begin, int64_t end, float deviation, float* out) {
  uint32_t bits[kDropoutBits] = {};
  float numbers[kDropoutBits];
  while (begin < end) {
    const int64_t block = begin / 4, skip = begin - 4 * block;
    const int64_t drawn = std::min(kDropoutChunk, (end - 4 * block + 3) / 4 * 4),
                  used = std::min(drawn - skip, end - begin);
    fill_philox(key, 0, static_cast<uint64_t>(block), drawn / 4, bits);
    normal_from_bits(bits, drawn, deviation, numbers);
    out = std::copy_n(numbers + skip, used, out);
    begin += used;
  }
}

}  // namespace ingot::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ingot::kernels {
namespace {
HWY_EXPORT(fill_range);
}  // namespace

void fill_normal(uint64_t key, int64_t begin, int64_t end, float deviation, float* out) {
  HWY_DYNAMIC_DISPATCH(fill_range)(key, begin, end, deviation, out);
}

}  // namespace ingot::kernels
#endif  // HWY_ONCE
