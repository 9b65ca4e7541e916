// The vector code of fused attention, one tile or unit of work at a time; attention.h has the plan around it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/attention/attention.h"
#include "kernels/matmul/panels.h"

namespace ingot::kernels {

// Queries go by in tiles of kQueryTile, in panels of kPanelColumns within; keys in blocks of at most kKeyBlock. Scores
// lie transposed, [keys, queries], so that the softmax over keys needs no sum across a vector's lanes and the products
// that read probabilities need no copy of them.
inline constexpr int64_t kQueryTile = 128;
inline constexpr int64_t kQueryPanels = kQueryTile / kPanelColumns;
inline constexpr int64_t kKeyBlock = 128;

constexpr int64_t query_tiles_of(int64_t tokens) {
  return (tokens + kQueryTile - 1) / kQueryTile;
}

// The queries [query_begin, query_end) of one head of one batch row. Strides of shape are given.
struct AttentionTile {
  int64_t batch = 0, head = 0;
  int64_t query_begin = 0, query_end = 0;
};

size_t attention_forward_scratch_bytes(const AttentionShape& shape);
void run_attention_forward(const AttentionShape& shape, const AttentionTile& tile, const AttentionInputs& inputs,
                           float* out, float* lse, float* scratch);

// The queries [query_begin, query_end), a multiple of tiles, of all heads that share one key/value head. Writes dq of
// these queries; writes dk and dv (row strides of their own, at this head) for the keys [0, query_end), no others.
struct AttentionBackwardUnit {
  int64_t batch = 0, kv_head = 0;
  int64_t query_begin = 0, query_end = 0;
  float* dk = nullptr;
  float* dv = nullptr;
  int64_t dk_stride = 0, dv_stride = 0;
};

size_t attention_backward_scratch_bytes(const AttentionShape& shape);
void run_attention_backward(const AttentionShape& shape, const AttentionBackwardUnit& unit,
                            const AttentionInputs& inputs, const float* out, const float* lse, const float* dout,
                            float* dq, float* scratch);

// to[rows, columns] += from[rows, columns].
void add_rows(int64_t rows, int64_t columns, const float* from, int64_t from_stride, float* to, int64_t to_stride);

}  // namespace ingot::kernels
