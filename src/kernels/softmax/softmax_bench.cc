#include "kernels/softmax/softmax.h"

#include <vector>

#include "kernels/bench.h"
#include "kernels/softmax/cross_entropy.h"

namespace ingot::kernels {
namespace {

void softmax_rows(benchmark::State& state) {
  const int64_t rows = 256, n = state.range(0);
  const HugeBuffer<float> x = bench::normal_buffer(rows * n, 1), y(rows * n);
  const Softmax args{.x = x.data(), .x_stride = n, .y = y.data(), .y_stride = n, .n = n, .scale = 0.125f};
  for (auto _ : state) softmax(args, 0, rows);
  bench::report_elements(state, static_cast<double>(rows * n));
  bench::report_bytes(state, static_cast<double>(rows * n) * 8);
}
BENCHMARK(softmax_rows)->Arg(64)->Arg(1024)->Arg(50257);

void softmax_grad_rows(benchmark::State& state) {
  const int64_t rows = 256, n = 1024;
  const HugeBuffer<float> y = bench::normal_buffer(rows * n, 1), dy = bench::normal_buffer(rows * n, 2), dx(rows * n);
  SoftmaxGrad args{.y = y.data(), .y_stride = n, .dy = dy.data(), .dy_stride = n, .dx = dx.data(), .dx_stride = n};
  args.n = n;
  for (auto _ : state) softmax_grad(args, 0, rows);
  bench::report_bytes(state, static_cast<double>(rows * n) * 12);
}
BENCHMARK(softmax_grad_rows);

// Loss and gradient of GPT-2's vocabulary.
void cross_entropy_with_grad(benchmark::State& state) {
  const int64_t rows = 128, vocab = 50257;
  const HugeBuffer<float> logits = bench::normal_buffer(rows * vocab, 1), grad(rows * vocab), loss(rows);
  const std::vector<int32_t> targets(static_cast<size_t>(rows), 777);
  CrossEntropy args{.logits = logits.data(), .stride = vocab, .vocab = vocab, .targets = targets.data()};
  args.loss = loss.data(), args.grad = grad.data(), args.grad_stride = vocab;
  for (auto _ : state) cross_entropy(args, 0, rows);
  bench::report_elements(state, static_cast<double>(rows * vocab));
  bench::report_bytes(state, static_cast<double>(rows * vocab) * 8);
}
BENCHMARK(cross_entropy_with_grad);

}  // namespace
}  // namespace ingot::kernels
