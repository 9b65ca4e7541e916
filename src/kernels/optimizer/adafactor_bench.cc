#include "kernels/optimizer/adafactor.h"

#include "kernels/bench.h"

namespace ingot::kernels {
namespace {

// All three sweeps over a matrix larger than the caches.
void adafactor_update(benchmark::State& state) {
  const int64_t rows = 4096, columns = 4096, n = rows * columns;
  const HugeBuffer<float> p = bench::normal_buffer(n, 1), grad = bench::normal_buffer(n, 2);
  const HugeBuffer<float> row_sums(rows), column_sums(columns);
  for (auto _ : state) {
    adafactor_squares(grad.data(), 1, columns, 0, rows, row_sums.data(), column_sums.data());
    benchmark::DoNotOptimize(
        adafactor_update_squares(grad.data(), 1e-3, row_sums.data(), column_sums.data(), columns, 0, rows));
    adafactor_apply(0.999, 1e-9, p.data(), grad.data(), 1e-3, row_sums.data(), column_sums.data(), columns, 0, rows);
  }
  bench::report_bytes(state, static_cast<double>(n) * 20);
}
BENCHMARK(adafactor_update);

}  // namespace
}  // namespace ingot::kernels
