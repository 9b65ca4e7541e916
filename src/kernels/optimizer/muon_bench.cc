#include "kernels/optimizer/muon.h"

#include "kernels/bench.h"

namespace ingot::kernels {
namespace {

// What Muon does beside its products.
void muon_elementwise(benchmark::State& state) {
  const int64_t n = int64_t{16} << 20;
  const HugeBuffer<float> p = bench::normal_buffer(n, 1), grad = bench::normal_buffer(n, 2), m(n), direction(n);
  for (auto _ : state) {
    muon_momentum(0.95, 1, grad.data(), m.data(), direction.data(), n);
    muon_apply(0.999, 1e-3, p.data(), direction.data(), n);
  }
  bench::report_bytes(state, static_cast<double>(n) * 28);
}
BENCHMARK(muon_elementwise);

}  // namespace
}  // namespace ingot::kernels
