#include "kernels/norm/norm.h"

#include "kernels/bench.h"

namespace ingot::kernels {
namespace {

constexpr int64_t kRows = 4096, kWidth = 768;
constexpr double kElements = static_cast<double>(kRows * kWidth);

void layer_norm_forward(benchmark::State& state) {
  const HugeBuffer<float> x = bench::normal_buffer(kRows * kWidth, 1), y(kRows * kWidth);
  const HugeBuffer<float> weight = bench::normal_buffer(kWidth, 2), bias = bench::normal_buffer(kWidth, 3);
  NormForward args{.x = x.data(), .weight = weight.data(), .bias = bias.data(), .y = y.data(), .n = kWidth};
  for (auto _ : state) layer_norm(args, 0, kRows);
  bench::report_bytes(state, kElements * 8);
}
BENCHMARK(layer_norm_forward);

void rms_norm_of_residual(benchmark::State& state) {
  const HugeBuffer<float> x = bench::normal_buffer(kRows * kWidth, 1), delta = bench::normal_buffer(kRows * kWidth, 4);
  const HugeBuffer<float> weight = bench::normal_buffer(kWidth, 2), y(kRows * kWidth), sum(kRows * kWidth);
  NormForward args{.x = x.data(), .weight = weight.data(), .y = y.data(), .n = kWidth};
  args.delta = delta.data(), args.sum = sum.data();
  if (state.range(0) != 0) args.dropout = {{1, 2, kWidth}, 0.1f};
  for (auto _ : state) rms_norm(args, 0, kRows);
  bench::report_bytes(state, kElements * 16);
}
BENCHMARK(rms_norm_of_residual)->ArgName("dropout")->Arg(0)->Arg(1);

void layer_norm_backward(benchmark::State& state) {
  const HugeBuffer<float> x = bench::normal_buffer(kRows * kWidth, 1), dy = bench::normal_buffer(kRows * kWidth, 2);
  const HugeBuffer<float> weight = bench::normal_buffer(kWidth, 3), dx(kRows * kWidth), sums(2 * kWidth);
  const HugeBuffer<float> mean(kRows), rstd = bench::normal_buffer(kRows, 4);
  NormBackward args{.x = x.data(), .dy = dy.data(), .weight = weight.data(), .mean = mean.data(), .rstd = rstd.data()};
  args.dx = dx.data(), args.n = kWidth, args.d_weight = sums.data(), args.d_bias = sums.data() + kWidth;
  for (auto _ : state) layer_norm_grad(args, 0, kRows);
  bench::report_bytes(state, kElements * 12);
}
BENCHMARK(layer_norm_backward);

}  // namespace
}  // namespace ingot::kernels
