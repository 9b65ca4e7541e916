#include "cost/machine.h"

#include <algorithm>

#include "kernels/peak/peak.h"

namespace ingot {

MachineLimits measure_machine(const ThreadPool& pool, DType dtype) {
  MachineLimits limits;
  limits.peak_gflops = kernels::peak_gflops(pool, dtype);
  limits.product_gflops = kernels::matmul_gflops(pool, dtype);
  limits.copy_gbytes_per_s = kernels::copy_bandwidth(pool);
  limits.peak_gflops = std::max(limits.peak_gflops, limits.product_gflops);
  return limits;
}

}  // namespace ingot
