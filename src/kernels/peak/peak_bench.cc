#include "kernels/bench.h"

namespace ingot::kernels {
namespace {

// One iteration is one whole measurement; the counters are its result.
void peaks(benchmark::State& state) {
  const ThreadPool pool(static_cast<int>(state.range(0)));
  for (auto _ : state) {
    state.counters["fp32_GFLOP/s"] = fp32_peak_gflops(pool);
    state.counters["bf16_GFLOP/s"] = bf16_peak(pool).gflops;
    state.counters["matmul_fp32"] = matmul_gflops(pool, DType::f32);
    state.counters["matmul_bf16"] = matmul_gflops(pool, DType::bf16);
    state.counters["read_GB/s"] = read_bandwidth(pool);
    state.counters["copy_GB/s"] = copy_bandwidth(pool);
  }
}
BENCHMARK(peaks)->Arg(1)->Arg(2)->Iterations(1)->UseRealTime();

}  // namespace
}  // namespace ingot::kernels
