// The elementwise parts of Muon (Jordan et al., "Muon: An optimizer for hidden layers in neural networks", 2024); the
// products between them are the program's.
//
// fp32, n elements each, in one pass over memory. Each element by itself: any cut gives the same bits. Serial; nothing
// is allocated.
#pragma once

#include <cstdint>

namespace ingot::kernels {

// With g = grad * grad_scale: m = momentum * m + (1 - momentum) * g in place, and Nesterov's direction
// momentum * m + (1 - momentum) * g.
void muon_momentum(double momentum, double grad_scale, const float* grad, float* m, float* direction, int64_t n);

// p = decay * p - step * direction, in place.
void muon_apply(double decay, double step, float* p, const float* direction, int64_t n);

}  // namespace ingot::kernels
