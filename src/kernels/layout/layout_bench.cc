#include "kernels/layout/layout.h"

#include "kernels/bench.h"

namespace ingot::kernels {
namespace {

constexpr int64_t kRows = 4096, kColumns = 3072, kElements = kRows * kColumns;

void transpose_matrix(benchmark::State& state) {
  const auto size = static_cast<size_t>(state.range(0));
  const HugeBuffer<float> from = bench::normal_buffer(kElements, 1), to(kElements);
  const bool stream = state.range(1) != 0;
  for (auto _ : state) transpose(from.data(), kColumns, to.data(), kRows, kRows, kColumns, size, stream);
  bench::report_bytes(state, 2.0 * kElements * static_cast<double>(size));
}
BENCHMARK(transpose_matrix)->ArgNames({"bytes", "stream"})->ArgsProduct({{4, 2}, {0, 1}});

// A tile that stays in L2.
void transpose_in_cache(benchmark::State& state) {
  const auto size = static_cast<size_t>(state.range(0));
  const HugeBuffer<float> from = bench::normal_buffer(64 * 768, 1), to(64 * 768);
  for (auto _ : state) transpose(from.data(), 768, to.data(), 64, 64, 768, size);
  bench::report_bytes(state, 2.0 * 64 * 768 * static_cast<double>(size));
}
BENCHMARK(transpose_in_cache)->ArgName("bytes")->Arg(4)->Arg(2);

// [4, 1024, 12, 64] to [4, 12, 1024, 64]: heads before positions.
void permute_heads(benchmark::State& state) {
  const StridedCopy copy = permutation_copy({4, 1024, 12, 64}, {0, 2, 1, 3}, 4);
  const int64_t n = copy.shape.elements();
  const HugeBuffer<float> from = bench::normal_buffer(n, 1), to(n);
  for (auto _ : state) strided_copy(copy, from.data(), to.data(), 0, rows_of(copy));
  bench::report_bytes(state, 8.0 * static_cast<double>(n));
}
BENCHMARK(permute_heads);

void cast_matrix(benchmark::State& state, DType from_dtype, DType to_dtype) {
  const HugeBuffer<float> from = bench::normal_buffer(kElements, 1), to(kElements);
  for (auto _ : state) cast(from.data(), from_dtype, to.data(), to_dtype, kElements);
  bench::report_bytes(state, static_cast<double>(size_of(from_dtype) + size_of(to_dtype)) * kElements);
}
BENCHMARK_CAPTURE(cast_matrix, f32_to_bf16, DType::f32, DType::bf16);
BENCHMARK_CAPTURE(cast_matrix, bf16_to_f32, DType::bf16, DType::f32);
BENCHMARK_CAPTURE(cast_matrix, f32_to_f16, DType::f32, DType::f16);
BENCHMARK_CAPTURE(cast_matrix, f16_to_f32, DType::f16, DType::f32);

}  // namespace
}  // namespace ingot::kernels
