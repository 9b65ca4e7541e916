#include "kernels/rope/rope.h"

#include <cmath>
#include <vector>

#include "kernels/bench.h"

namespace ingot::kernels {
namespace {

// q and k of a fused q/k/v row, in place: 8 + 4 of 16 heads of 64.
void rope_in_place(benchmark::State& state) {
  const int64_t rows = 2048, heads = 16, rotated = 12, dim = 64, half = dim / 2;
  const HugeBuffer<float> x = bench::normal_buffer(rows * heads * dim, 1), cos(rows * half), sin(rows * half);
  std::vector<double> frequencies;
  for (int64_t i = 0; i < half; ++i) {
    frequencies.push_back(std::pow(10000.0, -static_cast<double>(i) / static_cast<double>(half)));
  }
  rope_table(frequencies, 1, cos.data(), sin.data(), 0, rows);
  std::vector<int32_t> positions(static_cast<size_t>(rows));
  for (size_t i = 0; i < positions.size(); ++i) positions[i] = static_cast<int32_t>(i);
  Rope args{.x = x.data(), .x_stride = heads * dim, .y = x.data(), .y_stride = heads * dim, .heads = heads};
  args.rotated_heads = rotated, args.head_dim = dim, args.rotary_dim = dim, args.positions = positions.data();
  args.cos = cos.data(), args.sin = sin.data();
  for (auto _ : state) rope(args, 0, rows);
  bench::report_bytes(state, static_cast<double>(rows * rotated * dim) * 8);
}
BENCHMARK(rope_in_place);

}  // namespace
}  // namespace ingot::kernels
