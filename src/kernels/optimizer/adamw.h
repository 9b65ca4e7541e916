// AdamW (Loshchilov and Hutter, "Decoupled Weight Decay Regularization", 2019), as torch.optim.AdamW computes it.
#pragma once

#include <cstdint>

namespace ingot::kernels {

// One update: with g = grad * grad_scale,
//   p *= 1 - lr * weight_decay;  m = beta1 * m + (1 - beta1) * g;  v = beta2 * v + (1 - beta2) * g^2;
//   p -= lr / bias_correction1 * m / (sqrt(v) / sqrt(bias_correction2) + eps).
struct AdamW {
  double lr = 1e-3;
  double beta1 = 0.9, beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0;
  double bias_correction1 = 1, bias_correction2 = 1;  // 1 - beta^t at step t = 1, 2, …
  double grad_scale = 1;                              // clipping, loss scale
};

// 1 - beta^step, for step >= 1.
double adamw_bias_correction(double beta, int64_t step);

// p, m and v (fp32, n elements each) in place, in one pass over memory. Each element by itself: any cut gives the same
// bits. Serial; nothing is allocated.
void adamw(const AdamW& args, float* p, const float* grad, float* m, float* v, int64_t n);

}  // namespace ingot::kernels
