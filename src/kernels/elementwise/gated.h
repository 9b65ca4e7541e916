// Gated activations of an MLP (GLU variants, Shazeer 2020): y = act(gate) * up, with gate and up side by side in one
// row, as one matrix product makes them.
//
// gate_up [rows, 2n] row-major, gate first; y and dy [rows, n]; all dense fp32. Serial over rows [row_begin, row_end),
// each row by itself. d_gate_up may be gate_up.
#pragma once

#include <cstdint>

namespace ingot::kernels {

enum class GatedActivation : uint8_t { silu, gelu, gelu_tanh, relu, sigmoid };

void gated_activation(GatedActivation activation, const float* gate_up, float* y, int64_t n, int64_t row_begin,
                      int64_t row_end);
// d_gate = dy * up * act'(gate), d_up = dy * act(gate).
void gated_activation_grad(GatedActivation activation, const float* gate_up, const float* dy, float* d_gate_up,
                           int64_t n, int64_t row_begin, int64_t row_end);

}  // namespace ingot::kernels
