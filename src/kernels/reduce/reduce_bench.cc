#include "kernels/reduce/reduce.h"

#include "kernels/bench.h"

namespace ingot::kernels {
namespace {

constexpr int64_t kRows = 4096, kColumns = 3072, kElements = kRows * kColumns;

void sum_of_squares(benchmark::State& state) {
  const HugeBuffer<float> x = bench::normal_buffer(kElements, 1);
  for (auto _ : state) benchmark::DoNotOptimize(sum_squares(x.data(), kElements));
  bench::report_bytes(state, kElements * 4.0);
}
BENCHMARK(sum_of_squares);

void first_nonfinite_of_finite(benchmark::State& state) {
  const HugeBuffer<float> x = bench::normal_buffer(kElements, 1);
  for (auto _ : state) benchmark::DoNotOptimize(first_nonfinite(x.data(), kElements));
  bench::report_bytes(state, kElements * 4.0);
}
BENCHMARK(first_nonfinite_of_finite);

void sums_of_columns(benchmark::State& state) {
  const HugeBuffer<float> x = bench::normal_buffer(kElements, 1), out(kColumns);
  for (auto _ : state) column_sums(x.data(), kColumns, kColumns, 0, kRows, out.data());
  bench::report_bytes(state, kElements * 4.0);
}
BENCHMARK(sums_of_columns);

void sums_of_rows(benchmark::State& state) {
  const HugeBuffer<float> x = bench::normal_buffer(kElements, 1), out(kRows);
  for (auto _ : state) row_sums(x.data(), kColumns, kColumns, 0, kRows, out.data());
  bench::report_bytes(state, kElements * 4.0);
}
BENCHMARK(sums_of_rows);

}  // namespace
}  // namespace ingot::kernels
