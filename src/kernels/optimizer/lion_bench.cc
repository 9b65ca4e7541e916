#include "kernels/optimizer/lion.h"

#include "kernels/bench.h"

namespace ingot::kernels {
namespace {

void lion_update(benchmark::State& state) {
  const int64_t n = int64_t{16} << 20;
  const HugeBuffer<float> p = bench::normal_buffer(n, 1), grad = bench::normal_buffer(n, 2), m(n);
  const Lion args{.lr = 1e-4, .weight_decay = 0.1};
  for (auto _ : state) lion(args, p.data(), grad.data(), m.data(), n);
  bench::report_bytes(state, static_cast<double>(n) * 20);
}
BENCHMARK(lion_update);

}  // namespace
}  // namespace ingot::kernels
