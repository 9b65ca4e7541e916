// The scalar reference of Muon's elementwise parts, on float or double.
#pragma once

namespace ingot::kernels::reference {

// m' in place; the direction.
template <class T>
T muon_momentum(double momentum, double grad_scale, T grad, T& m) {
  const T g = grad * static_cast<T>(grad_scale);
  m = static_cast<T>(momentum) * m + static_cast<T>(1 - momentum) * g;
  return static_cast<T>(momentum) * m + static_cast<T>(1 - momentum) * g;
}

template <class T>
T muon_apply(double decay, double step, T p, T direction) {
  return static_cast<T>(decay) * p - static_cast<T>(step) * direction;
}

}  // namespace ingot::kernels::reference
