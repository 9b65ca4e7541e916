#include "kernels/optimizer/adamw.h"

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/optimizer/adamw.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ingot::kernels::HWY_NAMESPACE {
namespace {

void update(const AdamW& args, float* p, const float* grad, float* m, float* v, int64_t n) {
  const FloatVec beta1 = set_rounded(args.beta1), rest1 = set_rounded(1 - args.beta1);
  const FloatVec beta2 = set_rounded(args.beta2), rest2 = set_rounded(1 - args.beta2);
  const FloatVec decay = set_rounded(1 - args.lr * args.weight_decay);
  const FloatVec step = set_rounded(args.lr / args.bias_correction1);
  const FloatVec correction = set_rounded(1 / std::sqrt(args.bias_correction2));
  const FloatVec eps = set_rounded(args.eps), scale = set_rounded(args.grad_scale);
  for_vectors(n, [&](int64_t i, auto access) HWY_ATTR {
    const FloatVec g = hn::Mul(access.load(grad + i), scale);
    const FloatVec first = hn::MulAdd(beta1, access.load(m + i), hn::Mul(rest1, g));
    const FloatVec second = hn::MulAdd(beta2, access.load(v + i), hn::Mul(hn::Mul(rest2, g), g));
    const FloatVec denominator = hn::MulAdd(hn::Sqrt(second), correction, eps);
    const FloatVec decayed = hn::Mul(access.load(p + i), decay);
    access.store(hn::NegMulAdd(step, hn::Div(first, denominator), decayed), p + i);
    access.store(first, m + i);
    access.store(second, v + i);
  });
}

}  // namespace
}  // namespace ingot::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ingot::kernels {
namespace {
HWY_EXPORT(update);
}  // namespace

double adamw_bias_correction(double beta, int64_t step) {
  return 1 - std::pow(beta, static_cast<double>(step));
}

void adamw(const AdamW& args, float* p, const float* grad, float* m, float* v, int64_t n) {
  HWY_DYNAMIC_DISPATCH(update)(args, p, grad, m, v, n);
}

}  // namespace ingot::kernels
#endif  // HWY_ONCE
