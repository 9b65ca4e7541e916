// Rows of a table picked by id, and the gradient of the table.
//
// fp32: table [vocab, width], out and dy [n, width], ids int32 [n]. A table cut over ranks holds the ids [vocab_begin,
// vocab_begin + vocab): rows of other ids are zero, and have no gradient here. Nothing is allocated.
#pragma once

#include <cstdint>

namespace ingot::kernels {

struct EmbeddingTable {
  int64_t vocab = 0;  // rows of the table
  int64_t width = 0;
  int64_t vocab_begin = 0;
  int64_t whole_vocab = 0;  // ids are below it; 0: vocab, the table is whole. Another id is a bug.
};

struct Embedding {
  EmbeddingTable shape;
  const float* table = nullptr;
  const int32_t* ids = nullptr;
  float* out = nullptr;
  // or null: a second table [*, width] added to the first, by positions [n] (GPT-2).
  const float* position_table = nullptr;
  const int32_t* positions = nullptr;
};
// Rows [row_begin, row_end) of out.
void embedding(const Embedding& args, int64_t row_begin, int64_t row_end);

// d_table[ids[t]] += dy[t] for t = 0, 1, ... n - 1, in the columns [column_begin, column_end). Work is cut by columns:
// tiles touch disjoint memory, have equal work whatever the ids are, read only their part of dy, and add in the order
// of t, so the result is the same for any cut. Cutting at multiples of kEmbeddingGradColumns keeps tiles off each
// other's cache lines. The ids themselves (4 bytes a row) are read by every tile.
inline constexpr int64_t kEmbeddingGradColumns = 64;
struct EmbeddingGrad {
  EmbeddingTable shape;
  const int32_t* ids = nullptr;
  int64_t n = 0;
  const float* dy = nullptr;
  float* d_table = nullptr;
};
void embedding_grad(const EmbeddingGrad& args, int64_t column_begin, int64_t column_end);

}  // namespace ingot::kernels
