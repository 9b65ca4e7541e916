#include "kernels/optimizer/lion.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/optimizer/lion.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ingot::kernels::HWY_NAMESPACE {
namespace {

void lion_update(const Lion& args, float* p, const float* grad, float* m, int64_t n) {
  const FloatVec beta1 = set_rounded(args.beta1), rest1 = set_rounded(1 - args.beta1);
  const FloatVec beta2 = set_rounded(args.beta2), rest2 = set_rounded(1 - args.beta2);
  const FloatVec decay = set_rounded(1 - args.lr * args.weight_decay);
  const FloatVec step = set_rounded(args.lr), scale = set_rounded(args.grad_scale);
  for_vectors(n, [&](int64_t i, auto access) HWY_ATTR {
    const FloatVec g = hn::Mul(access.load(grad + i), scale);
    const FloatVec before = access.load(m + i);
    const FloatVec direction = hn::MulAdd(beta1, before, hn::Mul(rest1, g));
    const FloatVec signed_step = hn::IfThenZeroElse(hn::Eq(direction, hn::Zero(kFloat)), hn::CopySign(step, direction));
    access.store(hn::MulSub(access.load(p + i), decay, signed_step), p + i);
    access.store(hn::MulAdd(beta2, before, hn::Mul(rest2, g)), m + i);
  });
}

}  // namespace
}  // namespace ingot::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ingot::kernels {
namespace {
HWY_EXPORT(lion_update);
}  // namespace

void lion(const Lion& args, float* p, const float* grad, float* m, int64_t n) {
  HWY_DYNAMIC_DISPATCH(lion_update)(args, p, grad, m, n);
}

}  // namespace ingot::kernels
#endif  // HWY_ONCE
