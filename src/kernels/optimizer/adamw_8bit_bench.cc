#include "kernels/optimizer/adamw_8bit.h"

#include "base/dynamic_map.h"
#include "kernels/bench.h"

namespace ingot::kernels {
namespace {

void adamw_8bit_update(benchmark::State& state) {
  const int64_t n = int64_t{16} << 20;
  const HugeBuffer<float> p = bench::normal_buffer(n, 1), grad = bench::normal_buffer(n, 2);
  const HugeBuffer<float> m_scales(n / kDynamicBlock), v_scales(n / kDynamicBlock);
  const HugeBuffer<uint8_t> m_codes(n), v_codes(n);
  const AdamW args{.lr = 1e-4, .weight_decay = 0.1};
  for (auto _ : state)
    adamw_8bit(args, p.data(), grad.data(), {m_codes.data(), m_scales.data()}, {v_codes.data(), v_scales.data()}, n);
  bench::report_bytes(state, static_cast<double>(n) * (16 + 16.0 / kDynamicBlock));
}
BENCHMARK(adamw_8bit_update);

}  // namespace
}  // namespace ingot::kernels
