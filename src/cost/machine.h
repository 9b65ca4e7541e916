// What the machine can do at most, as a program's cost is held against it.
#pragma once

#include "base/dtype.h"
#include "base/parallel.h"

namespace ingot {

struct MachineLimits {
  double peak_gflops = 0;        // multiply-adds on registers, all threads
  double product_gflops = 0;     // matrix products by this program's own kernels
  double copy_gbytes_per_s = 0;  // read plus written
};

// Measured on the pool's threads; takes about 0.6 s. On a busy machine the figures are lower.
// dtype: what the operands of products are stored in.
MachineLimits measure_machine(const ThreadPool& pool, DType dtype = DType::f32);

}  // namespace ingot
