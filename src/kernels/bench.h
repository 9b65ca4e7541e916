// For the kernels' benchmarks: buffers, and rates beside the machine's measured limits on one thread.
#pragma once

#include <benchmark/benchmark.h>

#include <vector>

#include "base/clock.h"
#include "base/median.h"
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

// Times `work`, which does so many floating-point operations, and the peak of products in a dtype in turn: the median
// of GFLOP/s and of the percentages of the peak before and after. The benchmark's time is the work's own.
template <class Work>
void run_beside_peak(benchmark::State& state, const ThreadPool& pool, DType dtype, double flops, Work work) {
  constexpr double kShort = 0.001;  // one trial after one that is not counted
  std::vector<double> rates, parts;
  double before = peak_gflops(pool, dtype, kShort);
  for (auto _ : state) {
    const auto start = Clock::now();
    work();
    benchmark::ClobberMemory();
    const double seconds = seconds_since(start);
    state.SetIterationTime(seconds);
    const double after = peak_gflops(pool, dtype, kShort);
    rates.push_back(1e-9 * flops / seconds);
    parts.push_back(100 * rates.back() / ((before + after) / 2));
    before = after;
  }
  state.counters["GFLOP/s"] = median(rates);
  state.counters["percent_of_peak"] = median(parts);
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
