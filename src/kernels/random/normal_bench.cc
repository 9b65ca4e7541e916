#include "kernels/random/normal.h"

#include "kernels/bench.h"

namespace ingot::kernels {
namespace {

void normal_numbers(benchmark::State& state) {
  constexpr int64_t kCount = 1 << 22;
  const HugeBuffer<float> out(kCount);
  for (auto _ : state) fill_normal(1, 0, kCount, 0.02f, out.data());
  bench::report_bytes(state, static_cast<double>(kCount) * 4);
}
BENCHMARK(normal_numbers);

}  // namespace
}  // namespace ingot::kernels
