// The scalar reference of AdamW, on float or double.
#pragma once

#include <cmath>

#include "kernels/optimizer/adamw.h"

namespace ingot::kernels::reference {

template <class T>
void adamw(const AdamW& args, T& p, T grad, T& m, T& v) {
  const T g = grad * static_cast<T>(args.grad_scale);
  p *= static_cast<T>(1 - args.lr * args.weight_decay);
  m = static_cast<T>(args.beta1) * m + static_cast<T>(1 - args.beta1) * g;
  v = static_cast<T>(args.beta2) * v + static_cast<T>(1 - args.beta2) * g * g;
  const T denominator = std::sqrt(v) / static_cast<T>(std::sqrt(args.bias_correction2)) + static_cast<T>(args.eps);
  p -= static_cast<T>(args.lr / args.bias_correction1) * m / denominator;
}

}  // namespace ingot::kernels::reference
