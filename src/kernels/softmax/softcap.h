// Soft caps: cap·tanh(x / cap) of a row, and the way back. Serial over n elements; stable for numbers of any size.
#pragma once

#include <cstdint>

namespace ingot::kernels {

// y[i] = cap·tanh(x[i] / cap), cap > 0; y may be x.
void softcap(const float* x, float cap, int64_t n, float* y);

// dx[i] *= 1 - (y[i] / cap)², with y as softcap made it.
void softcap_grad(const float* y, float cap, int64_t n, float* dx);

}  // namespace ingot::kernels
