// The scalar reference of Lion, on float or double.
#pragma once

#include "kernels/optimizer/lion.h"

namespace ingot::kernels::reference {

template <class T>
void lion(const Lion& args, T& p, T grad, T& m) {
  const T g = grad * static_cast<T>(args.grad_scale);
  const T direction = static_cast<T>(args.beta1) * m + static_cast<T>(1 - args.beta1) * g;
  const T sign = direction > 0 ? T{1} : direction < 0 ? T{-1} : T{0};
  p = p * static_cast<T>(1 - args.lr * args.weight_decay) - static_cast<T>(args.lr) * sign;
  m = static_cast<T>(args.beta2) * m + static_cast<T>(1 - args.beta2) * g;
}

}  // namespace ingot::kernels::reference
