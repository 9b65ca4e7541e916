// Vector activations: their values, and values with slopes.
#if defined(INGOT_KERNELS_ACTIVATION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef INGOT_KERNELS_ACTIVATION_INL_H_
#undef INGOT_KERNELS_ACTIVATION_INL_H_
#else
#define INGOT_KERNELS_ACTIVATION_INL_H_
#endif

#include "kernels/elementwise/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ingot::kernels::HWY_NAMESPACE {

HWY_INLINE FloatVec normal_cdf(FloatVec x) {
  const FloatVec erf = vector_erf(hn::Mul(x, set(0.70710678118654752440f)));
  return hn::Mul(set(0.5f), hn::Add(set(1.0f), erf));
}

// 2u with u = sqrt(2/pi) (x + 0.044715 x^3): the tanh approximation needs 0.5 * (1 + tanh(u)), which is sigmoid(2u).
HWY_INLINE FloatVec gelu_tanh_argument(FloatVec x) {
  const FloatVec cubic = hn::MulAdd(hn::Mul(hn::Mul(x, x), set(0.044715f)), x, x);
  return hn::Mul(cubic, set(1.59576912160573071176f));
}

struct Relu {
  static HWY_INLINE FloatVec value(FloatVec x) {
    return hn::IfThenElse(hn::Lt(x, hn::Zero(kFloat)), hn::Zero(kFloat), x);
  }
  static HWY_INLINE void value_and_slope(FloatVec x, FloatVec& value, FloatVec& slope) {
    value = Relu::value(x);
    slope = hn::IfThenElse(hn::Le(x, hn::Zero(kFloat)), hn::Zero(kFloat), set(1.0f));
  }
};

struct Gelu {
  static HWY_INLINE FloatVec value(FloatVec x) { return hn::Mul(x, normal_cdf(x)); }
  static HWY_INLINE void value_and_slope(FloatVec x, FloatVec& value, FloatVec& slope) {
    const FloatVec cdf = normal_cdf(x);
    const FloatVec density = hn::Mul(vector_exp(hn::Mul(hn::Mul(x, set(-0.5f)), x)), set(0.39894228040143267794f));
    value = hn::Mul(x, cdf);
    slope = hn::MulAdd(x, density, cdf);
  }
};

struct GeluTanh {
  static HWY_INLINE FloatVec value(FloatVec x) { return hn::Mul(x, vector_sigmoid(gelu_tanh_argument(x))); }
  static HWY_INLINE void value_and_slope(FloatVec x, FloatVec& value, FloatVec& slope) {
    FloatVec s, complement;
    vector_sigmoids(gelu_tanh_argument(x), s, complement);
    value = hn::Mul(x, s);
    const FloatVec inner = hn::MulAdd(hn::Mul(x, x), set(0.134145f), set(1.0f));
    slope = hn::MulAdd(hn::Mul(value, complement), hn::Mul(inner, set(1.59576912160573071176f)), s);
  }
};

struct Silu {
  static HWY_INLINE FloatVec value(FloatVec x) { return hn::Mul(x, vector_sigmoid(x)); }
  static HWY_INLINE void value_and_slope(FloatVec x, FloatVec& value, FloatVec& slope) {
    FloatVec s, complement;
    vector_sigmoids(x, s, complement);
    value = hn::Mul(x, s);
    slope = hn::Mul(s, hn::MulAdd(x, complement, set(1.0f)));
  }
};

struct Sigmoid {
  static HWY_INLINE FloatVec value(FloatVec x) { return vector_sigmoid(x); }
  static HWY_INLINE void value_and_slope(FloatVec x, FloatVec& value, FloatVec& slope) {
    FloatVec complement;
    vector_sigmoids(x, value, complement);
    slope = hn::Mul(value, complement);
  }
};

struct Tanh {
  static HWY_INLINE FloatVec value(FloatVec x) { return vector_tanh(x); }
  static HWY_INLINE void value_and_slope(FloatVec x, FloatVec& value, FloatVec& slope) {
    value = vector_tanh(x);
    slope = hn::NegMulAdd(value, value, set(1.0f));
  }
};

}  // namespace ingot::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // INGOT_KERNELS_ACTIVATION_INL_H_
