#include "kernels/elementwise/elementwise.h"

#include <string>
#include <vector>

#include "kernels/bench.h"
#include "kernels/elementwise/gated.h"

namespace ingot::kernels {
namespace {

constexpr int64_t kRows = 2048, kColumns = 3072;

// One op over a matrix much larger than the caches, and over one that stays in L2 (what a fused tile sees).
void op(benchmark::State& state, EwOp what, int64_t rows, int64_t columns) {
  const HugeBuffer<float> a = bench::normal_buffer(rows * columns, 1), b = bench::normal_buffer(rows * columns, 2);
  const HugeBuffer<float> y(rows * columns), scratch(elementwise_scratch_floats(3));
  const EwInstruction program[] = {{what, 2, 0, 1, 0.1f, 0}};
  const EwInput inputs[] = {{a.data(), columns}, {b.data(), columns}};
  const EwOutput outputs[] = {{y.data(), columns, 2}};
  const EwStream streams[] = {{1, 2, columns}};
  const EwProgram whole{program, inputs, outputs, streams};
  for (auto _ : state) run_elementwise(whole, {0, rows, 0, columns}, scratch.data());
  const double elements = static_cast<double>(rows * columns);
  bench::report_bytes(state, elements * 4 * (operands_of(what) + 1));
  bench::report_elements(state, elements);
}

// The epilogue of GPT-2's first MLP product on one tile in L2: dropout(gelu_tanh(x + bias)).
void epilogue(benchmark::State& state) {
  const int64_t rows = 64, columns = 1024;
  const HugeBuffer<float> x = bench::normal_buffer(rows * columns, 1), bias = bench::normal_buffer(columns, 2);
  const HugeBuffer<float> y(rows * columns), scratch(elementwise_scratch_floats(4));
  const EwInstruction program[] = {{EwOp::add, 2, 0, 1}, {EwOp::gelu_tanh, 2, 2}, {EwOp::dropout, 3, 2, 0, 0.1f}};
  const EwInput inputs[] = {{x.data(), columns}, {bias.data(), 0}};
  const EwOutput outputs[] = {{y.data(), columns, 3}};
  const EwStream streams[] = {{1, 2, columns}};
  for (auto _ : state) {
    run_elementwise({program, inputs, outputs, streams}, {0, rows, 0, columns}, scratch.data());
  }
  bench::report_elements(state, static_cast<double>(rows * columns));
}
BENCHMARK(epilogue);

void swiglu(benchmark::State& state) {
  const int64_t rows = 1024, n = 2048;
  const HugeBuffer<float> gate_up = bench::normal_buffer(rows * 2 * n, 1), y(rows * n);
  for (auto _ : state) gated_activation(GatedActivation::silu, gate_up.data(), y.data(), n, 0, rows);
  bench::report_bytes(state, static_cast<double>(rows * n) * 12);
}
BENCHMARK(swiglu);

void swiglu_grad(benchmark::State& state) {
  const int64_t rows = 1024, n = 2048;
  const HugeBuffer<float> gate_up = bench::normal_buffer(rows * 2 * n, 1), dy = bench::normal_buffer(rows * n, 2);
  const HugeBuffer<float> grad(rows * 2 * n);
  for (auto _ : state) {
    gated_activation_grad(GatedActivation::silu, gate_up.data(), dy.data(), grad.data(), n, 0, rows);
  }
  bench::report_bytes(state, static_cast<double>(rows * n) * 20);
}
BENCHMARK(swiglu_grad);

const int kRegistered = [] {
  for (EwOp what : {EwOp::add, EwOp::exp, EwOp::log, EwOp::tanh, EwOp::sigmoid, EwOp::erf, EwOp::gelu, EwOp::gelu_tanh,
                    EwOp::gelu_grad, EwOp::gelu_tanh_grad, EwOp::silu, EwOp::silu_grad, EwOp::dropout}) {
    const std::string name(name_of(what));
    benchmark::RegisterBenchmark(("elementwise_in_memory/" + name).c_str(), op, what, kRows, kColumns);
    benchmark::RegisterBenchmark(("elementwise_in_cache/" + name).c_str(), op, what, 64, 1024);
  }
  return 0;
}();

}  // namespace
}  // namespace ingot::kernels
