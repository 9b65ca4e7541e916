#include "kernels/elementwise/gated.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise/gated.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/elementwise/activation-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ingot::kernels::HWY_NAMESPACE {
namespace {

template <class Activation>
void forward_rows(const float* gate_up, float* y, int64_t n, int64_t row_begin, int64_t row_end) {
  for (int64_t row = row_begin; row < row_end; ++row) {
    const float* gate = gate_up + 2 * n * row;
    const float* up = gate + n;
    float* to = y + n * row;
    for_vectors(n, [&](int64_t i, auto access) HWY_ATTR {
      access.store(hn::Mul(Activation::value(access.load(gate + i)), access.load(up + i)), to + i);
    });
  }
}

template <class Activation>
void backward_rows(const float* gate_up, const float* dy, float* d_gate_up, int64_t n, int64_t row_begin,
                   int64_t row_end) {
  for (int64_t row = row_begin; row < row_end; ++row) {
    const float* gate = gate_up + 2 * n * row;
    const float* from = dy + n * row;
    float* to = d_gate_up + 2 * n * row;
    for_vectors(n, [&](int64_t i, auto access) HWY_ATTR {
      const FloatVec x = access.load(gate + i), up = access.load(gate + n + i), d = access.load(from + i);
      FloatVec value, slope;
      Activation::value_and_slope(x, value, slope);
      access.store(hn::Mul(hn::Mul(d, up), slope), to + i);
      access.store(hn::Mul(d, value), to + n + i);
    });
  }
}

void forward(GatedActivation activation, const float* gate_up, float* y, int64_t n, int64_t begin, int64_t end) {
  switch (activation) {
    case GatedActivation::silu:
      return forward_rows<Silu>(gate_up, y, n, begin, end);
    case GatedActivation::gelu:
      return forward_rows<Gelu>(gate_up, y, n, begin, end);
    case GatedActivation::gelu_tanh:
      return forward_rows<GeluTanh>(gate_up, y, n, begin, end);
    case GatedActivation::relu:
      return forward_rows<Relu>(gate_up, y, n, begin, end);
    case GatedActivation::sigmoid:
      return forward_rows<Sigmoid>(gate_up, y, n, begin, end);
  }
}

void backward(GatedActivation activation, const float* gate_up, const float* dy, float* d_gate_up, int64_t n,
              int64_t begin, int64_t end) {
  switch (activation) {
    case GatedActivation::silu:
      return backward_rows<Silu>(gate_up, dy, d_gate_up, n, begin, end);
    case GatedActivation::gelu:
      return backward_rows<Gelu>(gate_up, dy, d_gate_up, n, begin, end);
    case GatedActivation::gelu_tanh:
      return backward_rows<GeluTanh>(gate_up, dy, d_gate_up, n, begin, end);
    case GatedActivation::relu:
      return backward_rows<Relu>(gate_up, dy, d_gate_up, n, begin, end);
    case GatedActivation::sigmoid:
      return backward_rows<Sigmoid>(gate_up, dy, d_gate_up, n, begin, end);
  }
}

}  // namespace
}  // namespace ingot::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ingot::kernels {
namespace {
HWY_EXPORT(forward);
HWY_EXPORT(backward);
}  // namespace

void gated_activation(GatedActivation activation, const float* gate_up, float* y, int64_t n, int64_t row_begin,
                      int64_t row_end) {
  HWY_DYNAMIC_DISPATCH(forward)(activation, gate_up, y, n, row_begin, row_end);
}

void gated_activation_grad(GatedActivation activation, const float* gate_up, const float* dy, float* d_gate_up,
                           int64_t n, int64_t row_begin, int64_t row_end) {
  HWY_DYNAMIC_DISPATCH(backward)(activation, gate_up, dy, d_gate_up, n, row_begin, row_end);
}

}  // namespace ingot::kernels
#endif  // HWY_ONCE
