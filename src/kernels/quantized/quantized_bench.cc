// A product of one row with an 8-bit matrix too large for the caches, as GPT-2's head is: bytes read beside what the
// machine copies.
#include "kernels/quantized/quantized.h"

#include <vector>

#include "kernels/bench.h"

namespace ingot::kernels {
namespace {

void product(benchmark::State& state) {
  const int64_t rows = state.range(0), outputs = state.range(1), inputs = 768, group = 64;
  const std::vector<int8_t> values(static_cast<size_t>(outputs * inputs), 3);
  const std::vector<float> scales(static_cast<size_t>(outputs * groups_of(inputs, group)), 0.01f);
  const HugeBuffer<float> x = bench::normal_buffer(rows * inputs, 1), y(rows * outputs);
  const QuantizedProduct args{{outputs, inputs, group, values.data(), scales.data()}, rows, x.data(), y.data()};
  for (auto _ : state) quantized_product(args, 0, outputs);
  bench::report_bytes(state, static_cast<double>(values.size() + 4 * scales.size()));
}
BENCHMARK(product)->ArgNames({"rows", "outputs"})->Args({1, 50257})->Args({2, 50257})->Args({8, 50257})->Args({1, 500});

}  // namespace
}  // namespace ingot::kernels
