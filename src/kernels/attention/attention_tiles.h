// The vector code of fused attention, one tile or unit of work at a time; attention.h has the plan around it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "base/dtype.h"
#include "base/parallel.h"
#include "kernels/matmul/matmul_tiles.h"

namespace ingot::kernels {

// Queries go by in tiles of kQueryTile, in panels of kPanelColumns within; keys in blocks of at most kKeyBlock. Scores
// lie transposed, [keys, queries], so that the softmax over keys needs no sum across a vector's lanes and the products
// that read probabilities need no copy of them.
inline constexpr int64_t kQueryTile = 128;
inline constexpr int64_t kQueryPanels = kQueryTile / kPanelColumns;
inline constexpr int64_t kKeyBlock = 128;
// Of 16-bit queries or keys, in f32 at a time.
inline constexpr int64_t kWidenedRows = std::max(kQueryTile, kKeyBlock);
// Products of a block of keys with a tile of queries, and as many numbers of 16 bits, in floats.
inline constexpr int64_t kProductFloats = kKeyBlock * kQueryTile, kHalfProductFloats = kProductFloats / 2;
// Random words are read by whole vectors.
inline constexpr int64_t kSpareWords = 64;

constexpr int64_t query_tiles_of(int64_t tokens) {
  return (tokens + kQueryTile - 1) / kQueryTile;
}

// Rows of f32, bf16 or f16, `stride` elements apart.
template <class Void>
struct RowsOf {
  template <class T>
  using Like = std::conditional_t<std::is_const_v<Void>, const T, T>;

  Void* data = nullptr;
  int64_t stride = 0;
  DType dtype = DType::f32;

  bool narrow() const { return dtype != DType::f32; }
  Like<float>* floats() const { return static_cast<Like<float>*>(data); }
  Like<uint16_t>* halves() const { return static_cast<Like<uint16_t>*>(data); }
  // The rows from one of them, and an element in it, on.
  RowsOf from(int64_t row, int64_t column = 0) const {
    const int64_t offset = (row * stride + column) * static_cast<int64_t>(size_of(dtype));
    return {static_cast<Like<std::byte>*>(data) + offset, stride, dtype};
  }
};
using StoredRows = RowsOf<const void>;
using OutputRows = RowsOf<void>;

// The keys that each query of a tile sees: position begin + i sees first[i] <= j <= begin + i.
struct Sight {
  int64_t begin = 0, end = 0;  // the tile's queries, as positions among the keys
  int32_t first[kQueryTile];

  int64_t queries() const { return end - begin; }
  int64_t panels() const { return panels_of(queries()); }
  // The queries of one panel.
  int64_t panel_begin(int64_t panel) const { return begin + panel * kPanelColumns; }
  int64_t panel_end(int64_t panel) const { return std::min(end, panel_begin(panel) + kPanelColumns); }
  int32_t lowest(int64_t from, int64_t to) const { return *std::min_element(first + from - begin, first + to - begin); }
  int32_t highest(int64_t from, int64_t to) const {
    return *std::max_element(first + from - begin, first + to - begin);
  }
  // Whether a query in [from, to) sees a key in [key_begin, key_end).
  bool sees(int64_t from, int64_t to, int64_t key_begin, int64_t key_end) const {
    for (int64_t i = from; i < to; ++i) {
      if (std::max<int64_t>(first[i - begin], key_begin) <= std::min(i, key_end - 1)) return true;
    }
    return false;
  }
};

// segment_start is at the tile's first query, or null.
Sight sight_of(int64_t begin, int64_t end, int64_t window, const int32_t* segment_start);

// Which random numbers drop the weights of a tile: the weight of its query i for key j has the index first + i * stride
// + j.
struct DropoutPlace {
  float p = 0.0f;
  uint64_t key = 0, counter = 0;
  int64_t first = 0, stride = 0;
};

// A tile of queries of one head. q, out and lse are at its first query, k and v at key 0.
struct AttentionTile {
  Sight sight;
  int64_t dim = 0;
  float scale = 1.0f;
  float softcap = 0.0f;  // of the scaled scores; 0: none
  StoredRows q, k, v;    // of one dtype
  OutputRows out;
  float* lse = nullptr;  // two numbers a query, or null
  DropoutPlace dropout;
  Bf16Product bf16 = Bf16Product::widened;  // counts where q, k and v are bf16
};

// Whether all products of attention are of bf16 in pairs, with weights and their gradients rounded; else all are in
// fp32. Not a matter of what forward's result is stored in: it is rounded where it is computed or later, for the same
// bits.
constexpr bool attends_in_pairs(DType qkv, Bf16Product bf16) {
  return qkv == DType::bf16 && bf16 != Bf16Product::widened;
}
constexpr bool gradients_in_pairs(DType qkv, DType dout, Bf16Product bf16) {
  return attends_in_pairs(qkv, bf16) && dout == DType::bf16;
}

size_t attention_forward_scratch_bytes(int64_t head_dim, DType qkv, Bf16Product bf16);
void run_attention_forward(const AttentionTile& tile, float* scratch);

// A tile of backward: forward's results are read here instead of written.
struct AttentionGradientTile {
  AttentionTile tile;  // without out and lse
  StoredRows out, dout;
  const float* lse = nullptr;
  OutputRows dq;
};

// The queries [query_begin, query_end) of the heads [head_begin, head_end), which share one key/value head; query_begin
// is a multiple of kQueryTile. Writes dq of these queries, and dk and dv of that head for the keys [0, query_end), no
// others.
struct AttentionBackwardUnit {
  int64_t head_begin = 0, head_end = 0;
  int64_t query_begin = 0, query_end = 0;
  float *dk = nullptr, *dv = nullptr;  // at key 0
  int64_t dk_stride = 0, dv_stride = 0;
  FunctionRef<AttentionGradientTile(int64_t head, int64_t query_begin, int64_t query_end)> tile_of;
};

size_t attention_backward_scratch_bytes(int64_t head_dim, DType qkv, DType out, Bf16Product bf16);
void run_attention_backward(const AttentionBackwardUnit& unit, int64_t head_dim, float* scratch);

// to[rows, columns] += from[rows, columns].
void add_rows(int64_t rows, int64_t columns, const float* from, int64_t from_stride, float* to, int64_t to_stride);

}  // namespace ingot::kernels
