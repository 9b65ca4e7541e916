// What this machine can do at most, measured: the limits that kernels are compared with, in benchmarks and `ingot
// check`. Each call takes less than half a second, uses the pool's threads (a pool of one: per-thread figures) and
// returns the median of its trials: what the machine holds while it is measured. Where others use it too, limits are to
// be measured around what they are compared with. Bandwidths allocate their buffers for the call.
#pragma once

#include <string>

#include "base/dtype.h"
#include "base/parallel.h"

namespace ingot::kernels {

inline constexpr double kPeakSeconds = 0.2;

// Multiply-adds on registers alone, over 5 ms at a time for so many seconds, in the instruction set in use. 1 GFLOP/s =
// 10^9 multiplications or additions a second.
double fp32_peak_gflops(const ThreadPool& pool, double seconds = kPeakSeconds);

// The same for products of bf16 summed in fp32.
struct Bf16Peak {
  double gflops = 0;         // 0: the CPU has no such instructions
  std::string instructions;  // "AMX", "AVX512-BF16" or ""
};
Bf16Peak bf16_peak(const ThreadPool& pool, double seconds = kPeakSeconds);

// The limit of products whose operands are stored so: the register-only loop of the instructions that multiply them.
// bf16 where the CPU has none for it, and f16, are widened and multiplied in fp32.
double peak_gflops(const ThreadPool& pool, DType dtype, double seconds = kPeakSeconds);

// Matrix products [128, 1024] x [1024, 1024] a thread by this program's own kernels (kernels/matmul), in f32, bf16 or
// f16. What training can hope for.
double matmul_gflops(const ThreadPool& pool, DType dtype);

// GB/s (10^9 bytes) over memory larger than the caches (512 MiB or more). Copying counts bytes read plus written.
double read_bandwidth(const ThreadPool& pool);
double copy_bandwidth(const ThreadPool& pool);

}  // namespace ingot::kernels
