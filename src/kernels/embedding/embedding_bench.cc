#include "kernels/embedding/embedding.h"

#include <vector>

#include "kernels/bench.h"

namespace ingot::kernels {
namespace {

constexpr int64_t kVocab = 50257, kWidth = 768, kRows = 4096;

std::vector<int32_t> random_ids() {
  std::vector<int32_t> ids(static_cast<size_t>(kRows));
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int32_t>(bounded_at(1, i, kVocab));
  return ids;
}

void embedding_rows(benchmark::State& state) {
  const HugeBuffer<float> table = bench::normal_buffer(kVocab * kWidth, 1), out(kRows * kWidth);
  const std::vector<int32_t> ids = random_ids();
  const Embedding args{.shape = {kVocab, kWidth}, .table = table.data(), .ids = ids.data(), .out = out.data()};
  for (auto _ : state) embedding(args, 0, kRows);
  bench::report_bytes(state, static_cast<double>(kRows * kWidth) * 8);
}
BENCHMARK(embedding_rows);

// In tiles of columns, as a caller with threads cuts it.
void embedding_grad_tiles(benchmark::State& state) {
  const HugeBuffer<float> dy = bench::normal_buffer(kRows * kWidth, 1), d_table(kVocab * kWidth);
  const std::vector<int32_t> ids = random_ids();
  const EmbeddingGrad args{{kVocab, kWidth}, ids.data(), kRows, dy.data(), d_table.data()};
  const int64_t tile = state.range(0);
  for (auto _ : state) {
    for (int64_t c = 0; c < kWidth; c += tile) embedding_grad(args, c, c + tile);
  }
  bench::report_bytes(state, static_cast<double>(kRows * kWidth) * 12);
}
BENCHMARK(embedding_grad_tiles)->Arg(kEmbeddingGradColumns)->Arg(kWidth);

}  // namespace
}  // namespace ingot::kernels
