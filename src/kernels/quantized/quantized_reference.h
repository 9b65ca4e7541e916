// The product with an 8-bit matrix as plain loops in double precision: what the vector code is tested against.
#pragma once

#include "kernels/quantized/quantized.h"

namespace ingot::kernels::reference {

inline double weight_at(const QuantizedMatrix& m, int64_t output, int64_t input) {
  return double{m.scales[output * groups_of(m.inputs, m.group) + input / m.group]} *
         m.values[output * m.inputs + input];
}

inline double quantized_product(const QuantizedProduct& args, int64_t row, int64_t output) {
  double sum = 0;
  for (int64_t p = 0; p < args.matrix.inputs; ++p)
    sum += double{args.x[row * args.matrix.inputs + p]} * weight_at(args.matrix, output, p);
  return sum;
}

}  // namespace ingot::kernels::reference
