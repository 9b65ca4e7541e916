// What fused attention's forward and backward share: a tile of queries with what it sees, masked transposed scores, and
// dropout. Included once for each instruction set (see Highway's foreach_target.h).
#if defined(INGOT_KERNELS_ATTENTION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef INGOT_KERNELS_ATTENTION_INL_H_
#undef INGOT_KERNELS_ATTENTION_INL_H_
#else
#define INGOT_KERNELS_ATTENTION_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "kernels/attention/attention_tiles.h"
#include "kernels/elementwise/dropout-inl.h"
#include "kernels/elementwise/math-inl.h"
#include "kernels/matmul/gemm-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ingot::kernels::HWY_NAMESPACE {

// Far below every score, so that exp(kMaskedScore - maximum) is 0; finite, so that no difference of two is NaN.
inline constexpr float kMaskedScore = -2e38f;
inline constexpr float kNoMaximum = -1e30f;

constexpr int64_t padded(int64_t columns) {
  return panels_of(columns) * kPanelColumns;
}

// The keys that each query of a tile sees: first[i] <= j <= query_begin + i.
struct Sight {
  int64_t begin = 0, end = 0;  // the tile's queries
  int32_t first[kQueryTile];

  int64_t queries() const { return end - begin; }
  int64_t panels() const { return panels_of(queries()); }
  // The queries of one panel, as positions.
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

inline void fill_sight(const AttentionShape& shape, int64_t batch, int64_t begin, int64_t end,
                       const int32_t* segment_start, Sight& sight) {
  sight.begin = begin;
  sight.end = end;
  for (int64_t i = begin; i < end; ++i) {
    int64_t first = segment_start != nullptr ? std::max(segment_start[batch * shape.tokens + i], 0) : 0;
    if (shape.window > 0) first = std::max(first, i - shape.window + 1);
    sight.first[i - begin] = static_cast<int32_t>(first);
  }
  for (int64_t i = end; i < begin + kQueryTile; ++i)
    sight.first[i - begin] = 0;  // lanes that are computed and not used
}

// Panels [dim, kPanelColumns] of transposed, scaled queries.
HWY_INLINE void pack_queries(int64_t queries, int64_t dim, const float* q, int64_t stride, float scale, float* panels) {
  for (int64_t begin = 0; begin < queries; begin += kPanelColumns) {
    float* panel = panels + begin * dim;
    pack_panel_transposed(dim, std::min(kPanelColumns, queries - begin), q + begin * stride, stride, panel);
    for_vectors(dim * kPanelColumns,
                [&](int64_t i, auto at) { at.store(hn::Mul(at.load(panel + i), set(scale)), panel + i); });
  }
}

// Panels [rows, kPanelColumns] of the columns of x [rows, dim], scaled. Row p of panel c is at panels[c * rows_apart *
// kPanelColumns].
HWY_INLINE void pack_columns(int64_t rows, int64_t dim, const float* x, int64_t stride, float scale, float* panels) {
  for (int64_t column = 0; column < dim; column += kPanelColumns) {
    float* panel = panels + column * rows;
    pack_panel(rows, std::min(kPanelColumns, dim - column), x + column, stride, panel);
    if (scale != 1.0f) {
      for_vectors(rows * kPanelColumns,
                  [&](int64_t i, auto at) { at.store(hn::Mul(at.load(panel + i), set(scale)), panel + i); });
    }
  }
}

// Makes scores [keys, ...] of one panel's queries that may not be seen kMaskedScore.
HWY_INLINE void mask_scores(const Sight& sight, int64_t panel, int64_t key_begin, int64_t keys, float* scores,
                            int64_t stride) {
  const int64_t from = sight.panel_begin(panel), to = sight.panel_end(panel);
  if (sight.highest(from, to) <= key_begin && key_begin + keys - 1 <= from) return;
  for (int64_t lane = 0; lane < kPanelColumns; lane += lanes()) {
    const auto first = hn::LoadU(kInt, sight.first + panel * kPanelColumns + lane);
    const auto last = hn::Iota(kInt, static_cast<int32_t>(from + lane));
    for (int64_t j = 0; j < keys; ++j) {
      const auto key = hn::Set(kInt, static_cast<int32_t>(key_begin + j));
      const auto hidden = hn::Or(hn::VecFromMask(kInt, hn::Gt(first, key)), hn::VecFromMask(kInt, hn::Gt(key, last)));
      float* at = scores + j * stride + lane;
      hn::StoreU(hn::IfThenElse(hn::MaskFromVec(hn::BitCast(kFloat, hidden)), set(kMaskedScore), hn::LoadU(kFloat, at)),
                 kFloat, at);
    }
  }
}

// Random words of one panel's queries for the keys [key_begin, key_begin + keys), transposed to [keys, kPanelColumns].
inline void draw_panel(const AttentionShape& shape, const AttentionTile& tile, const AttentionDropout& dropout,
                       int64_t query_begin, int64_t query_end, int64_t key_begin, int64_t keys, uint32_t* words) {
  static_assert(kKeyBlock <= kDropoutChunk);
  uint32_t buffer[kDropoutBits];
  for (int64_t i = query_begin; i < query_end; ++i) {
    const int64_t row = ((tile.batch * shape.heads + tile.head) * shape.tokens + i) * shape.tokens;
    const uint32_t* bits = draw_bits(dropout.key, dropout.counter, row + key_begin, keys, buffer);
    for (int64_t j = 0; j < keys; ++j) words[j * kPanelColumns + (i - query_begin)] = bits[j];
  }
}

}  // namespace ingot::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // INGOT_KERNELS_ATTENTION_INL_H_
