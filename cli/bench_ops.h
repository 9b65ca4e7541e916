// Graphs for `ingot bench op`, `attention` and `layer`.
#pragma once

#include <string>
#include <vector>

#include "bench_graph.h"
#include "models/model.h"

namespace ingot::cli {

struct OpSizes {
  int64_t rows = 4096, width = 768, inner = 3072, vocabulary = 8192;
};
// What `bench op` can measure: an op's name, or what a product is for.
std::vector<std::string> op_cases();
// Error (usage): no such case.
Result<BenchRow> bench_op(const std::string& name, const OpSizes& sizes, int64_t repetitions,
                          const MachineLimits& limits, const ThreadPool& pool);

struct AttentionSizes {
  int64_t batch = 1, tokens = 1024, heads = 12, kv_heads = 0, head_dim = 64, window = 0;  // kv_heads 0: as heads
};
// Forward and backward.
Result<std::vector<BenchRow>> bench_attention(const AttentionSizes& sizes, int64_t repetitions,
                                              const MachineLimits& limits, const ThreadPool& pool);

// One block of the model, each op forward and backward, and both in all.
Result<std::vector<BenchRow>> bench_layer(const Model& model, int64_t batch, int64_t tokens, int64_t repetitions,
                                          const MachineLimits& limits, const ThreadPool& pool);

}  // namespace ingot::cli
