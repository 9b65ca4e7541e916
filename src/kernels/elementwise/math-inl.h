// Vector exp, log, tanh, sigmoid and erf in fp32, within 4 ulp over the whole range, infinities and denormals included;
// NaN stays NaN. Polynomials: S. L. Moshier's Cephes (expf, logf, tanhf) and N. Juffa's erff.
// A lane's result depends on its argument alone.
#if defined(INGOT_KERNELS_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef INGOT_KERNELS_MATH_INL_H_
#undef INGOT_KERNELS_MATH_INL_H_
#else
#define INGOT_KERNELS_MATH_INL_H_
#endif

#include <limits>

#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ingot::kernels::HWY_NAMESPACE {

using IntTag = hn::RebindToSigned<FloatTag>;
inline constexpr IntTag kInt{};

// Horner's scheme, from the highest coefficient down.
HWY_INLINE FloatVec polynomial(FloatVec, FloatVec result) {
  return result;
}
template <class... Rest>
HWY_INLINE FloatVec polynomial(FloatVec x, FloatVec result, float next, Rest... rest) {
  return polynomial(x, hn::MulAdd(result, x, set(next)), rest...);
}
template <class... Rest>
HWY_INLINE FloatVec polynomial(FloatVec x, float first, float second, Rest... rest) {
  return polynomial(x, hn::MulAdd(set(first), x, set(second)), rest...);
}

HWY_INLINE FloatVec nan_kept(FloatVec argument, FloatVec result) {
  return hn::IfThenElse(hn::IsNaN(argument), argument, result);
}

// p * 2^n for integral n in [-300, 300], with one rounding.
HWY_INLINE FloatVec scale_by_power(FloatVec p, FloatVec n) {
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
  return FloatVec{_mm512_scalef_ps(p.raw, n.raw)};
#else
  // In two factors, since 2^n itself may be out of range where p * 2^n is not; the first product is exact.
  const auto whole = hn::ConvertTo(kInt, n);
  const auto half = hn::ShiftRight<1>(whole);
  const auto bias = hn::Set(kInt, 127);
  const auto factor1 = hn::BitCast(kFloat, hn::ShiftLeft<23>(hn::Add(half, bias)));
  const auto factor2 = hn::BitCast(kFloat, hn::ShiftLeft<23>(hn::Add(hn::Sub(whole, half), bias)));
  return hn::Mul(hn::Mul(p, factor1), factor2);
#endif
}

HWY_INLINE FloatVec vector_exp(FloatVec x) {
  // Beyond these the result is infinite or zero.
  const FloatVec clamped = hn::Max(set(-104.0f), hn::Min(set(89.0f), x));
  const FloatVec n = hn::Round(hn::Mul(clamped, set(1.44269504088896341f)));
  FloatVec r = hn::NegMulAdd(n, set(0.693359375f), clamped);
  r = hn::NegMulAdd(n, set(-2.12194440e-4f), r);
  const FloatVec p = polynomial(r, 1.9875691500e-4f, 1.3981999507e-3f, 8.3334519073e-3f, 4.1665795894e-2f,
                                1.6666665459e-1f, 5.0000001201e-1f);
  const FloatVec y = hn::Add(hn::MulAdd(p, hn::Mul(r, r), r), set(1.0f));
  const FloatVec result = scale_by_power(y, n);
#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
  return result;  // x86's min and max return their second operand where either is NaN
#else
  return nan_kept(x, result);
#endif
}

HWY_INLINE FloatVec vector_log(FloatVec x) {
  const auto denormal = hn::Lt(x, set(std::numeric_limits<float>::min()));
  const FloatVec normal = hn::IfThenElse(denormal, hn::Mul(x, set(0x1p25f)), x);
  const auto bits = hn::BitCast(kInt, normal);
  // normal = m * 2^e with m in [0.5, 1), then moved to [sqrt(0.5), sqrt(2)).
  const auto e_bits = hn::Sub(hn::ShiftRight<23>(bits), hn::Set(kInt, 126));
  FloatVec e = hn::Sub(hn::ConvertTo(kFloat, e_bits), hn::IfThenElseZero(denormal, set(25.0f)));
  const FloatVec m = hn::BitCast(kFloat, hn::Or(hn::And(bits, hn::Set(kInt, 0x007fffff)), hn::Set(kInt, 0x3f000000)));
  const auto small = hn::Lt(m, set(0.707106781186547524f));
  e = hn::Sub(e, hn::IfThenElseZero(small, set(1.0f)));
  const FloatVec f = hn::Sub(hn::Add(m, hn::IfThenElseZero(small, m)), set(1.0f));
  const FloatVec z = hn::Mul(f, f);
  FloatVec y = polynomial(f, 7.0376836292e-2f, -1.1514610310e-1f, 1.1676998740e-1f, -1.2420140846e-1f, 1.4249322787e-1f,
                          -1.6668057665e-1f, 2.0000714765e-1f, -2.4999993993e-1f, 3.3333331174e-1f);
  y = hn::Mul(hn::Mul(y, f), z);
  y = hn::MulAdd(e, set(-2.12194440e-4f), y);
  y = hn::NegMulAdd(set(0.5f), z, y);
  FloatVec result = hn::MulAdd(e, set(0.693359375f), hn::Add(f, y));
  const float infinity = std::numeric_limits<float>::infinity();
  result = hn::IfThenElse(hn::Eq(x, set(infinity)), x, result);
  result = hn::IfThenElse(hn::Eq(x, hn::Zero(kFloat)), set(-infinity), result);
  result = hn::IfThenElse(hn::Lt(x, hn::Zero(kFloat)), set(std::numeric_limits<float>::quiet_NaN()), result);
  return nan_kept(x, result);
}

// sigmoid(x) = 1 / (1 + exp(-x)) and 1 - sigmoid(x), both to full precision where they are small.
HWY_INLINE void vector_sigmoids(FloatVec x, FloatVec& sigmoid, FloatVec& complement) {
  const FloatVec e = vector_exp(hn::Neg(hn::Abs(x)));
  const FloatVec larger = hn::Div(set(1.0f), hn::Add(set(1.0f), e));
  const FloatVec smaller = hn::Mul(e, larger);
  const auto negative = hn::Lt(x, hn::Zero(kFloat));
  sigmoid = hn::IfThenElse(negative, smaller, larger);
  complement = hn::IfThenElse(negative, larger, smaller);
}
HWY_INLINE FloatVec vector_sigmoid(FloatVec x) {
  FloatVec sigmoid, complement;
  vector_sigmoids(x, sigmoid, complement);
  return sigmoid;
}

HWY_INLINE FloatVec vector_tanh(FloatVec x) {
  const FloatVec magnitude = hn::Abs(x);
  const FloatVec e = vector_exp(hn::Mul(magnitude, set(-2.0f)));
  const FloatVec large = hn::Div(hn::Sub(set(1.0f), e), hn::Add(set(1.0f), e));
  const FloatVec z = hn::Mul(x, x);
  const FloatVec p =
      polynomial(z, -5.70498872745e-3f, 2.06390887954e-2f, -5.37397155531e-2f, 1.33314422036e-1f, -3.33332819422e-1f);
  const FloatVec small = hn::MulAdd(hn::Mul(p, z), x, x);
  return hn::IfThenElse(hn::Lt(magnitude, set(0.625f)), small, hn::CopySign(large, x));
}

HWY_INLINE FloatVec vector_erf(FloatVec x) {
  const FloatVec t = hn::Abs(x);
  const FloatVec s = hn::Mul(x, x);
  // erf is 1 in fp32 from about 3.92 on; beyond, the polynomial would leave the range it is good for.
  const FloatVec c = hn::Min(set(4.0f), t);
  FloatVec r = hn::MulAdd(set(-1.72853470e-5f), c, set(3.83197126e-4f));
  const FloatVec u = hn::MulAdd(set(-3.88396438e-3f), c, set(2.42546219e-2f));
  r = hn::MulAdd(r, hn::Mul(c, c), u);
  r = polynomial(c, r, -1.06777877e-1f, -6.34846687e-1f, -1.28717512e-1f);
  r = hn::MulSub(r, c, c);
  const FloatVec large = hn::CopySign(hn::Sub(set(1.0f), vector_exp(r)), x);
  const FloatVec p =
      polynomial(s, -5.96761703e-4f, 4.99119423e-3f, -2.67681349e-2f, 1.12819925e-1f, -3.76125336e-1f, 1.28379166e-1f);
  const FloatVec small = hn::MulAdd(p, x, x);
  return nan_kept(x, hn::IfThenElse(hn::Gt(t, set(0.927734375f)), large, small));
}

}  // namespace ingot::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // INGOT_KERNELS_MATH_INL_H_
