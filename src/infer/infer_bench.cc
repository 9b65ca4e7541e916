// One generated token of GPT-2 124M beside the machine's limit: it cannot be faster than one reading of the weights and
// caches, at the rate that `ingot check` shows. Arguments: threads, tokens before, bits of a weight.
#include <benchmark/benchmark.h>

#include "base/clock.h"
#include "base/median.h"
#include "infer/generator.h"
#include "kernels/peak/peak.h"

namespace ingot {
namespace {

// What one token reads at least: every weight but the learned positions, and the caches as far as they are filled.
double bytes_a_token(const Generator& generator, int64_t context) {
  double bytes = 0;
  for (const Variable& variable : generator.arena().variables().variables()) {
    const auto all = static_cast<double>(variable.type.bytes());
    const bool is_cache = variable.name.starts_with("cache.");
    if (is_cache) bytes += all * static_cast<double>(context) / static_cast<double>(variable.type.shape[2]);
    if (!is_cache && variable.name.find("wpe") == std::string::npos) bytes += all;
  }
  return bytes;
}

// Weights stay zero: no kernel's time depends on values.
void generate_a_token(benchmark::State& state) {
  const ThreadPool pool(static_cast<int>(state.range(0)));
  const Model model = Model::preset("gpt2-124m").value();
  const WeightFormat weights = state.range(2) == 8 ? WeightFormat::int8 : for_generation(WeightFormat::fp32, {});
  auto generator = Generator::create(model, {.tokens = 512, .weights = weights}, pool).value();
  const std::vector<int32_t> prompt(static_cast<size_t>(state.range(1)), 1);
  if (!generator->feed(prompt).ok()) return state.SkipWithError("the prompt does not fit");
  std::vector<double> steps, limits{kernels::read_bandwidth(pool)};
  for (auto _ : state) {
    const auto start = Clock::now();
    if (!generator->feed(Tokens(prompt.data(), 1)).ok()) return state.SkipWithError("the step failed");
    steps.push_back(seconds_since(start));
    state.SetIterationTime(steps.back());
  }
  limits.push_back(kernels::read_bandwidth(pool));
  const double rate = bytes_a_token(*generator, state.range(1)) / median(steps) * 1e-9,
               limit = (limits[0] + limits[1]) / 2;
  state.counters["GB/s"] = rate;
  state.counters["reading_GB/s"] = limit;
  state.counters["of_the_limit"] = rate / limit;
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
