// For the kernels' benchmarks: buffers, and rates beside the machine's measured limits on one thread.
#pragma once

#include <benchmark/benchmark.h>

#include "base/parallel.h"
#include "base/rng.h"
#include "kernels/huge_buffer.h"
#include "kernels/peak/peak.h"

namespace ingot::kernels::bench {

inline HugeBuffer<float> normal_buffer(int64_t n, uint64_t seed) {
  HugeBuffer<float> buffer(n);
  for (int64_t i = 0; i < n; ++i) {
    buffer.data()[i] =
        i < 4096 ? static_cast<float>(normal_at(seed, static_cast<uint64_t>(i))) : buffer.data()[i - 4096];
  }
  return buffer;
}

// Measured once a program, by the first benchmark that asks.
inline double copy_limit() {
  static const double limit = copy_bandwidth(ThreadPool(1));
  return limit;
}
inline double fp32_limit() {
  static const double limit = fp32_peak_gflops(ThreadPool(1));
  return limit;
}

// The peak of products in a dtype, measured before and after what is compared with it.
class PeakAround {
 public:
  PeakAround(const ThreadPool& pool, DType dtype) : pool_(pool), dtype_(dtype), before_(peak_gflops(pool, dtype)) {}
  double gflops() const { return (before_ + peak_gflops(pool_, dtype_)) / 2; }

 private:
  const ThreadPool& pool_;
  DType dtype_;
  double before_;
};

// Floating-point operations that one iteration does: GFLOP/s, and the percentage of the peak around it.
inline void report_flops(benchmark::State& state, double flops, const PeakAround& peak) {
  using benchmark::Counter;
  const double done = 1e-9 * flops * static_cast<double>(state.iterations());
  state.counters["GFLOP/s"] = Counter(done, Counter::kIsRate);
  state.counters["percent_of_peak"] = Counter(100.0 * done / peak.gflops(), Counter::kIsRate);
}

// Bytes that one iteration reads and writes: GB/s, and its share of what copying reaches.
inline void report_bytes(benchmark::State& state, double bytes) {
  using benchmark::Counter;
  const double total = bytes * static_cast<double>(state.iterations());
  state.counters["GB/s"] = Counter(total * 1e-9, Counter::kIsRate);
  state.counters["of_copy"] = Counter(total * 1e-9 / copy_limit(), Counter::kIsRate);
}

// Elements that one iteration computes: for what arithmetic limits. In billions a second.
inline void report_elements(benchmark::State& state, double elements) {
  using benchmark::Counter;
  state.counters["Gelem/s"] = Counter(elements * 1e-9 * static_cast<double>(state.iterations()), Counter::kIsRate);
}

}  // namespace ingot::kernels::bench
