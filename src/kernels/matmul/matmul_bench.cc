// The products of a GPT-2 124M training step, and of generation, beside the limits of the same process. Arguments: rows
// (of the batch), and the widths of the weight [k, n]. percent_of_peak is of peak_gflops in their dtype on as many
// threads, measured around each benchmark.
#include "kernels/matmul/matmul.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <vector>

#include "base/parallel.h"
#include "base/system.h"
#include "kernels/bench.h"
#include "kernels/huge_buffer.h"
#include "kernels/layout/layout.h"
#include "kernels/peak/peak.h"

namespace ingot::kernels {
namespace {

enum class Kind { forward, forward_packed, input_gradient, input_gradient_packed, weight_gradient, pack };

// The weight W is [k, n] in memory; X is [rows, k] and dY [rows, n].
MatmulShape shape_of(Kind kind, int64_t rows, int64_t k, int64_t n) {
  MatmulShape s;
  switch (kind) {
    case Kind::forward:
    case Kind::forward_packed:
    case Kind::pack:
      s.rows = rows;
      s.n = n;
      s.k = k;
      s.packed_b = kind != Kind::forward;
      break;
    case Kind::input_gradient:
    case Kind::input_gradient_packed:
      s.rows = rows;
      s.n = k;
      s.k = n;
      s.transpose_b = true;
      s.packed_b = kind == Kind::input_gradient_packed;
      break;
    case Kind::weight_gradient:
      s.rows = k;
      s.n = n;
      s.k = rows;
      s.transpose_a = true;
      s.accumulate = true;
      s.packed_b = pays_to_pack(s);
      break;
  }
  return s;
}

// Mixed precision: activations and weights narrow, and the gradients of weights summed in f32.
MatmulShape with_dtype(MatmulShape s, Kind kind, DType dtype) {
  s.a = s.b = s.c = s.pack_source = dtype;
  if (kind == Kind::weight_gradient) s.c = DType::f32;
  return s;
}

std::vector<float> numbers(int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(i * 2654435761u >> 16 & 255u) / 256.0f - 0.5f;
  return values;
}

HugeBuffer<std::byte> numbers_of(DType dtype, int64_t count) {
  const std::vector<float> values = numbers(count);
  HugeBuffer<std::byte> bytes(count * static_cast<int64_t>(size_of(dtype)));
  cast(values.data(), DType::f32, bytes.data(), dtype, count);
  return bytes;
}

void run(benchmark::State& state, Kind kind, DType dtype) {
  const int threads = default_threads(0);
  const ThreadPool pool(threads);
  const MatmulShape shape = with_dtype(shape_of(kind, state.range(0), state.range(1), state.range(2)), kind, dtype);
  const auto matmul = Matmul::create(shape, threads).value();
  const auto a = numbers_of(shape.a, shape.rows * shape.k);
  const auto b = numbers_of(shape.packed_b ? shape.pack_source : shape.b, shape.k * shape.n);
  const HugeBuffer<std::byte> c(shape.rows * shape.n * static_cast<int64_t>(size_of(shape.c))),
      packed(static_cast<int64_t>(matmul->packed_b_bytes()));
  const size_t scratch_stride = (matmul->scratch_bytes() + 127) / 64 * 64;
  const HugeBuffer<std::byte> scratch(static_cast<int64_t>(scratch_stride) * threads);
  const auto scratch_of = [&](int thread) { return scratch.data() + scratch_stride * static_cast<size_t>(thread); };
  const auto pack = [&] {
    pool.run(matmul->pack_tiles(), [&](int64_t part, int thread) {
      matmul->pack_b(part, b.data(), packed.data(), thread, scratch_of(thread));
    });
  };
  if (shape.packed_b) pack();
  const void* second = shape.packed_b ? packed.data() : b.data();
  const double flops =
      2.0 * static_cast<double>(shape.rows) * static_cast<double>(shape.n) * static_cast<double>(shape.k);
  bench::run_beside_peak(state, pool, dtype, kind == Kind::pack ? 0 : flops, [&] {
    // dY is another one each time, so packing it is part of the product.
    if (shape.packed_b && (kind == Kind::pack || kind == Kind::weight_gradient)) pack();
    if (kind == Kind::pack) return;
    pool.run(matmul->tiles(), [&](int64_t tile, int thread) {
      matmul->run(tile, a.data(), second, c.data(), thread, scratch_of(thread));
    });
  });
  const double weight_bytes = static_cast<double>(shape.k * shape.n) * static_cast<double>(size_of(shape.b));
  state.counters["weight_GB/s"] =
      benchmark::Counter(1e-9 * weight_bytes * static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}

void gpt2(benchmark::internal::Benchmark* bench) {
  for (int64_t rows : {4096, 1024, 256, 64}) {
    for (const auto& [k, n] : {std::pair<int64_t, int64_t>{768, 2304}, {768, 768}, {768, 3072}, {3072, 768}})
      bench->Args({rows, k, n});
  }
  bench->UseManualTime()->Unit(benchmark::kMicrosecond);
}
// A few rows times one weight after the other out of more than the caches hold, as generation has them.
void generation(benchmark::State& state, bool transposed) {
  const int64_t rows = state.range(0), k = state.range(1), n = state.range(2),
                weights = (int64_t{1} << 28) / (4 * k * n) + 1;
  const ThreadPool pool(static_cast<int>(state.range(3)));
  MatmulShape shape;
  shape.rows = rows, shape.n = n, shape.k = k, shape.transpose_b = transposed;
  const auto matmul = Matmul::create(shape, pool.threads()).value();
  const std::vector<float> a = numbers(rows * k);
  const HugeBuffer<float> b(weights * k * n);
  pool.run(weights, [&](int64_t i, int) { std::fill_n(b.data() + i * k * n, k * n, 0.5f); });
  std::vector<float> c(static_cast<size_t>(rows * n));
  const size_t scratch_stride = (matmul->scratch_bytes() + 127) / 64 * 64;
  std::vector<std::byte> scratch(scratch_stride * static_cast<size_t>(pool.threads()));
  const auto whole = [&](const float* weight) {
    pool.run(matmul->tiles(), [&](int64_t tile, int thread) {
      matmul->run(tile, a.data(), weight, c.data(), thread,
                  scratch.data() + scratch_stride * static_cast<size_t>(thread));
    });
  };
  for (auto _ : state)
    for (int64_t i = 0; i < weights; ++i) whole(b.data() + i * k * n);
  const double bytes = static_cast<double>(weights * k * n) * 4;
  state.counters["weight_GB/s"] =
      benchmark::Counter(1e-9 * bytes * static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
  state.counters["of_reading"] = benchmark::Counter(
      1e-9 * bytes * static_cast<double>(state.iterations()) / read_bandwidth(pool), benchmark::Counter::kIsRate);
}
void generation_shapes(benchmark::internal::Benchmark* bench) {
  for (const int64_t threads : {1, 2})
    for (const int64_t rows : {1, 4})
      for (const auto& [k, n] : {std::pair<int64_t, int64_t>{768, 2304}, {768, 768}, {3072, 768}, {768, 50257}})
        bench->Args({rows, k, n, threads});
  bench->ArgNames({"rows", "k", "n", "threads"})->UseRealTime()->Unit(benchmark::kMillisecond);
}

BENCHMARK_CAPTURE(run, forward, Kind::forward, DType::f32)->Apply(gpt2);
BENCHMARK_CAPTURE(run, forward_packed, Kind::forward_packed, DType::f32)->Apply(gpt2)->Args({1024, 768, 50257});
BENCHMARK_CAPTURE(run, input_gradient, Kind::input_gradient, DType::f32)->Apply(gpt2);
BENCHMARK_CAPTURE(run, input_gradient_packed, Kind::input_gradient_packed, DType::f32)->Apply(gpt2);
BENCHMARK_CAPTURE(run, weight_gradient, Kind::weight_gradient, DType::f32)->Apply(gpt2);
BENCHMARK_CAPTURE(run, pack, Kind::pack, DType::f32)->Apply(gpt2);
BENCHMARK_CAPTURE(run, forward_bf16, Kind::forward, DType::bf16)->Apply(gpt2);
BENCHMARK_CAPTURE(run, forward_packed_bf16, Kind::forward_packed, DType::bf16)->Apply(gpt2);
BENCHMARK_CAPTURE(run, input_gradient_bf16, Kind::input_gradient, DType::bf16)->Apply(gpt2);
BENCHMARK_CAPTURE(run, input_gradient_packed_bf16, Kind::input_gradient_packed, DType::bf16)->Apply(gpt2);
BENCHMARK_CAPTURE(run, weight_gradient_bf16, Kind::weight_gradient, DType::bf16)->Apply(gpt2);
BENCHMARK_CAPTURE(run, pack_bf16, Kind::pack, DType::bf16)->Apply(gpt2);
BENCHMARK_CAPTURE(run, forward_packed_f16, Kind::forward_packed, DType::f16)->Apply(gpt2);
BENCHMARK_CAPTURE(run, input_gradient_packed_f16, Kind::input_gradient_packed, DType::f16)->Apply(gpt2);
BENCHMARK_CAPTURE(run, weight_gradient_f16, Kind::weight_gradient, DType::f16)->Apply(gpt2);
BENCHMARK_CAPTURE(generation, plain, false)->Apply(generation_shapes);
BENCHMARK_CAPTURE(generation, transposed, true)->Apply(generation_shapes);

}  // namespace
}  // namespace ingot::kernels
