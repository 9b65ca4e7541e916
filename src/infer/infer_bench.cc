// One generated token of GPT-2 124M beside the machine's limit: it cannot be faster than one reading of the weights and
// caches. of_the_limit is the median of the ratios of readings and steps made in turn. Arguments: threads, tokens
// before, bits of a weight.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>

#include "infer/generator.h"
#include "kernels/reduce/reduce.h"

namespace ingot {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2));
  return values[values.size() / 2];
}

// Reads all variables from end to end.
float read_all(const Arena& arena, const ThreadPool& pool) {
  constexpr int64_t kTile = 1 << 18;
  const int64_t floats = arena.variables().bytes() / 4;
  const auto* from = reinterpret_cast<const float*>(arena.persistent());
  std::vector<float> largest(static_cast<size_t>(pool.threads()) * 16);
  pool.run(floats / kTile, [&](int64_t tile, int thread) {
    float& slot = largest[static_cast<size_t>(thread) * 16];
    slot = std::max(slot, kernels::max_abs(from + tile * kTile, kTile));
  });
  return *std::ranges::max_element(largest);
}

// Steps and readings in turn, since the machine may be shared. Weights stay zero: no kernel's time depends on values.
void generate_a_token(benchmark::State& state) {
  const ThreadPool pool(static_cast<int>(state.range(0)));
  const Model model = Model::preset("gpt2-124m").value();
  const WeightFormat weights = state.range(2) == 8 ? WeightFormat::int8 : WeightFormat::fp32;
  auto generator = Generator::create(model, {.tokens = 512, .weights = weights}, pool).value();
  const std::vector<int32_t> prompt(static_cast<size_t>(state.range(1)), 1);
  if (!generator->feed(prompt).ok()) return state.SkipWithError("the prompt does not fit");
  std::vector<double> steps, readings, ratios;
  for (auto _ : state) {
    auto start = Clock::now();
    if (!generator->feed(Tokens(prompt.data(), 1)).ok()) return state.SkipWithError("the step failed");
    steps.push_back(seconds_since(start));
    state.SetIterationTime(steps.back());
    start = Clock::now();
    benchmark::DoNotOptimize(read_all(generator->arena(), pool));
    readings.push_back(seconds_since(start));
    ratios.push_back(readings.back() / steps.back());
  }
  const auto bytes = static_cast<double>(generator->arena().variables().bytes());
  state.counters["best_ms"] = std::ranges::min(steps) * 1e3;
  state.counters["best_reading_ms"] = std::ranges::min(readings) * 1e3;
  state.counters["reading_GB_per_s"] = bytes / std::ranges::min(readings) * 1e-9;
  state.counters["of_the_limit"] = median(ratios);
}
BENCHMARK(generate_a_token)
    ->ArgNames({"threads", "context", "bits"})
    ->Args({1, 16, 32})
    ->Args({2, 16, 32})
    ->Args({2, 400, 32})
    ->Args({1, 16, 8})
    ->Args({2, 16, 8})
    ->Args({2, 400, 8})
    ->Iterations(40)
    ->Unit(benchmark::kMillisecond)
    ->UseManualTime();

}  // namespace
}  // namespace ingot
