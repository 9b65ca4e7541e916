#include "kernels/softmax/softcap.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/softmax/softcap.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/elementwise/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ingot::kernels::HWY_NAMESPACE {
namespace {

void softcap_row(const float* x, float cap, int64_t n, float* y) {
  const FloatVec inverse = set(1.0f / cap), factor = set(cap);
  for_vectors(n, [&](int64_t i, auto access) HWY_ATTR {
    access.store(hn::Mul(vector_tanh(hn::Mul(access.load(x + i), inverse)), factor), y + i);
  });
}

void softcap_grad_row(const float* y, float cap, int64_t n, float* dx) {
  const FloatVec inverse = set(1.0f / cap), one = set(1.0f);
  for_vectors(n, [&](int64_t i, auto access) HWY_ATTR {
    const FloatVec t = hn::Mul(access.load(y + i), inverse);
    access.store(hn::Mul(access.load(dx + i), hn::NegMulAdd(t, t, one)), dx + i);
  });
}

}  // namespace
}  // namespace ingot::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ingot::kernels {
namespace {
HWY_EXPORT(softcap_row);
HWY_EXPORT(softcap_grad_row);
}  // namespace

void softcap(const float* x, float cap, int64_t n, float* y) {
  HWY_DYNAMIC_DISPATCH(softcap_row)(x, cap, n, y);
}

void softcap_grad(const float* y, float cap, int64_t n, float* dx) {
  HWY_DYNAMIC_DISPATCH(softcap_grad_row)(y, cap, n, dx);
}

}  // namespace ingot::kernels
#endif  // HWY_ONCE
