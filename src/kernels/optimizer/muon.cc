#include "kernels/optimizer/muon.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/optimizer/muon.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ingot::kernels::HWY_NAMESPACE {
namespace {

void momentum_step(double momentum, double grad_scale, const float* grad, float* m, float* direction, int64_t n) {
  const FloatVec old = set_rounded(momentum), rest = set_rounded((1 - momentum) * grad_scale);
  for_vectors(n, [&](int64_t i, auto access) HWY_ATTR {
    const FloatVec g = hn::Mul(access.load(grad + i), rest);
    const FloatVec moment = hn::MulAdd(old, access.load(m + i), g);
    access.store(moment, m + i);
    access.store(hn::MulAdd(old, moment, g), direction + i);
  });
}

void apply_direction(double decay, double step, float* p, const float* direction, int64_t n) {
  const FloatVec keep = set_rounded(decay), step_size = set_rounded(step);
  for_vectors(n, [&](int64_t i, auto access) HWY_ATTR {
    access.store(hn::NegMulAdd(step_size, access.load(direction + i), hn::Mul(access.load(p + i), keep)), p + i);
  });
}

}  // namespace
}  // namespace ingot::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ingot::kernels {
namespace {
HWY_EXPORT(momentum_step);
HWY_EXPORT(apply_direction);
}  // namespace

void muon_momentum(double momentum, double grad_scale, const float* grad, float* m, float* direction, int64_t n) {
  HWY_DYNAMIC_DISPATCH(momentum_step)(momentum, grad_scale, grad, m, direction, n);
}

void muon_apply(double decay, double step, float* p, const float* direction, int64_t n) {
  HWY_DYNAMIC_DISPATCH(apply_direction)(decay, step, p, direction, n);
}

}  // namespace ingot::kernels
#endif  // HWY_ONCE
