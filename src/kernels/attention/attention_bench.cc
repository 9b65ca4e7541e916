// Causal attention, forward and backward. Arguments: batch, tokens, heads, key/value heads, head_dim. FLOPs are those
// of the products under the causal mask: 2 of them forward, 5 backward. percent_of_peak is of peak_gflops in
// their dtype on as many threads, measured around each benchmark. extra_MB is memory beyond inputs and outputs.
#include "kernels/attention/attention.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/parallel.h"
#include "base/system.h"
#include "kernels/attention/cached_attention.h"
#include "kernels/bench.h"
#include "kernels/layout/layout.h"

namespace ingot::kernels {
namespace {

std::vector<std::byte> stored_as(DType dtype, const std::vector<float>& values) {
  std::vector<std::byte> stored(values.size() * size_of(dtype));
  cast(values.data(), DType::f32, stored.data(), dtype, static_cast<int64_t>(values.size()));
  return stored;
}

std::vector<float> numbers(int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(i * 2654435761u >> 16 & 255u) / 128.0f - 1.0f;
  return values;
}

AttentionShape shape_of(const benchmark::State& state, float dropout, DType dtype) {
  AttentionShape s;
  s.qkv = s.out = s.dq = s.dk = s.dv = dtype;
  s.batch = state.range(0);
  s.tokens = state.range(1);
  s.heads = state.range(2);
  s.kv_heads = state.range(3);
  s.head_dim = state.range(4);
  s.scale = 1.0f / std::sqrt(static_cast<float>(s.head_dim));
  s.dropout_p = dropout;
  s.q_row_stride = s.k_row_stride = s.v_row_stride = (s.heads + 2 * s.kv_heads) * s.head_dim;
  return s;
}

void attention(benchmark::State& state, bool forward, bool backward, float dropout, DType dtype) {
  const int threads = default_threads(0);
  const ThreadPool pool(threads);
  const AttentionShape s = shape_of(state, dropout, dtype);
  const auto ahead = AttentionForward::create(s, threads).value();
  const auto back = AttentionBackward::create(s, threads).value();
  const int64_t rows = s.batch * s.tokens, k_at = s.heads * s.head_dim, v_at = k_at + s.kv_heads * s.head_dim;
  const auto bytes = [dtype](int64_t elements) { return elements * static_cast<int64_t>(size_of(dtype)); };
  const std::vector<std::byte> qkv = stored_as(dtype, numbers(rows * s.q_row_stride)),
                               dout = stored_as(dtype, numbers(rows * k_at));
  std::vector<std::byte> gradient(qkv.size()), out(dout.size());
  std::vector<float> lse(static_cast<size_t>(2 * rows * s.heads));
  const size_t stride = (std::max(ahead->scratch_bytes(), backward ? back->scratch_bytes() : 0) + 63) / 64 * 64;
  std::vector<std::byte> scratch(stride * static_cast<size_t>(threads));
  std::vector<std::byte> workspace(backward ? back->workspace_bytes() : 0);
  const AttentionInputs inputs{qkv.data(), qkv.data() + bytes(k_at), qkv.data() + bytes(v_at), nullptr, {1, 2}};
  const AttentionGradients gradients{gradient.data(), gradient.data() + bytes(k_at), gradient.data() + bytes(v_at)};
  const auto scratch_of = [&](int thread) { return scratch.data() + stride * static_cast<size_t>(thread); };
  const auto run_forward = [&] {
    pool.run(ahead->tiles(), [&](int64_t tile, int thread) {
      ahead->run(tile, inputs, out.data(), lse.data(), thread, scratch_of(thread));
    });
  };
  run_forward();
  const auto pairs = static_cast<double>(s.batch * s.heads) * static_cast<double>(s.tokens * (s.tokens + 1) / 2);
  const double products = (forward ? 2 : 0) + (backward ? 5 : 0);
  bench::run_beside_peak(state, pool, dtype, products * 2 * pairs * static_cast<double>(s.head_dim), [&] {
    if (forward) run_forward();
    for (int stage = 0; backward && stage < back->stages(); ++stage) {
      pool.run(back->tiles(stage), [&](int64_t tile, int thread) {
        back->run(stage, tile, inputs, out.data(), lse.data(), dout.data(), gradients, workspace.data(), thread,
                  scratch_of(thread));
      });
    }
  });
  state.counters["extra_MB"] = 1e-6 * static_cast<double>(scratch.size() + workspace.size());
}

void cached(benchmark::State& state) {
  const int threads = default_threads(0);
  const ThreadPool pool(threads);
  CachedAttentionShape s;
  s.heads = state.range(0);
  s.kv_heads = state.range(1);
  s.head_dim = state.range(2);
  s.capacity = state.range(3);
  s.scale = 0.125f;
  const auto attention_step = CachedAttention::create(s, threads).value();
  const int64_t cache = s.kv_heads * s.capacity * s.head_dim;
  const std::vector<float> q = numbers(s.heads * s.head_dim), k = numbers(cache), v = numbers(cache);
  std::vector<float> out(q.size());
  const size_t stride = (attention_step->scratch_bytes() + 63) / 64 * 64;
  std::vector<std::byte> scratch(stride * static_cast<size_t>(threads));
  const auto start = static_cast<int32_t>(s.capacity - 1);
  for (auto _ : state) {
    pool.run(attention_step->tiles(), [&](int64_t tile, int thread) {
      attention_step->run(tile, q.data(), k.data(), v.data(), &start, out.data(), thread,
                          scratch.data() + stride * static_cast<size_t>(thread));
    });
    benchmark::ClobberMemory();
  }
  using benchmark::Counter;
  state.counters["cache_GB/s"] = Counter(
      2e-9 * static_cast<double>(cache) * sizeof(float) * static_cast<double>(state.iterations()), Counter::kIsRate);
}

void shapes(benchmark::internal::Benchmark* bench) {
  bench->Args({1, 1024, 12, 12, 64})
      ->Args({4, 256, 12, 12, 64})
      ->Args({1, 2048, 8, 2, 128})
      ->Args({16, 64, 12, 12, 64});
  bench->UseManualTime()->Unit(benchmark::kMillisecond);
}

BENCHMARK_CAPTURE(attention, forward, true, false, 0.0f, DType::f32)->Apply(shapes);
BENCHMARK_CAPTURE(attention, backward, false, true, 0.0f, DType::f32)->Apply(shapes);
BENCHMARK_CAPTURE(attention, both, true, true, 0.0f, DType::f32)->Apply(shapes);
BENCHMARK_CAPTURE(attention, both_with_dropout, true, true, 0.1f, DType::f32)->Apply(shapes);
BENCHMARK_CAPTURE(attention, forward_bf16, true, false, 0.0f, DType::bf16)->Apply(shapes);
BENCHMARK_CAPTURE(attention, backward_bf16, false, true, 0.0f, DType::bf16)->Apply(shapes);
BENCHMARK_CAPTURE(attention, both_f16, true, true, 0.0f, DType::f16)->Apply(shapes);
BENCHMARK(cached)->Args({12, 12, 64, 1024})->Args({32, 8, 128, 4096})->UseRealTime()->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace ingot::kernels
