// Lion (Chen et al., "Symbolic Discovery of Optimization Algorithms", 2023).
#pragma once

#include <cstdint>

namespace ingot::kernels {

// One update: with g = grad * grad_scale,
//   p *= 1 - lr * weight_decay;  p -= lr * sign(beta1 * m + (1 - beta1) * g);  m = beta2 * m + (1 - beta2) * g.
// sign(0) is 0.
struct Lion {
  double lr = 1e-4;
  double beta1 = 0.9, beta2 = 0.99;
  double weight_decay = 0;
  double grad_scale = 1;  // clipping, loss scale
};

// p and m (fp32, n elements each) in place, in one pass over memory. Each element by itself: any cut gives the same
// bits. Serial; nothing is allocated.
void lion(const Lion& args, float* p, const float* grad, float* m, int64_t n);

}  // namespace ingot::kernels
