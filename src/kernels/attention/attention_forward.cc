#include <cmath>
#include <limits>

#include "kernels/attention/attention_tiles.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/attention/attention_forward.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/attention/attention-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ingot::kernels::HWY_NAMESPACE {

// The running softmax of a tile: maximum and sum of exponentials so far, and the unnormalised output [queries, padded
// dim].
struct Running {
  float maximum[kQueryTile];
  float sum[kQueryTile];
  float factor[kQueryTile];  // what the newest block's maximum makes of what was summed before
};

// The highest of `before` and at(j) for all keys j.
template <class At>
HWY_INLINE FloatVec highest_of(int64_t keys, FloatVec before, At at) {
  FloatVec high0 = before, high1 = before, high2 = before, high3 = before;
  int64_t j = 0;
  for (; j + 4 <= keys; j += 4) {
    high0 = hn::Max(high0, at(j));
    high1 = hn::Max(high1, at(j + 1));
    high2 = hn::Max(high2, at(j + 2));
    high3 = hn::Max(high3, at(j + 3));
  }
  for (; j < keys; ++j) high0 = hn::Max(high0, at(j));
  return hn::Max(hn::Max(high0, high1), hn::Max(high2, high3));
}

// Scores [keys, kPanelColumns] become 2^(score - new maximum).
HWY_INLINE void softmax_block(int64_t keys, float* scores, float* maximum, float* sum, float* factor) {
  for (int64_t lane = 0; lane < kPanelColumns; lane += lanes()) {
    float* column = scores + lane;
    const auto at = [&](int64_t j) { return hn::LoadU(kFloat, column + j * kPanelColumns); };
    const FloatVec before = hn::LoadU(kFloat, maximum + lane);
    const FloatVec highest = highest_of(keys, before, at);
    FloatVec total0 = hn::Zero(kFloat), total1 = total0;
    const auto power = [&](int64_t i) {
      const FloatVec p = power_of_two(hn::Sub(at(i), highest));
      hn::StoreU(p, kFloat, column + i * kPanelColumns);
      return p;
    };
    int64_t j = 0;
    for (; j + 2 <= keys; j += 2) {
      total0 = hn::Add(total0, power(j));
      total1 = hn::Add(total1, power(j + 1));
    }
    if (j < keys) total0 = hn::Add(total0, power(j));
    const FloatVec shrink = power_of_two(hn::Sub(before, highest));
    hn::StoreU(highest, kFloat, maximum + lane);
    hn::StoreU(hn::MulAdd(hn::LoadU(kFloat, sum + lane), shrink, hn::Add(total0, total1)), kFloat, sum + lane);
    hn::StoreU(shrink, kFloat, factor + lane);
  }
}

HWY_INLINE void drop_block(int64_t keys, float p, const uint32_t* words, float* weights) {
  const FloatVec limit = set(p), scale = set(1.0f / (1.0f - p));
  for_vectors(keys * kPanelColumns, [&](int64_t i, auto at) {
    at.store(apply_dropout(at.load(weights + i), words + i, limit, scale), weights + i);
  });
}

// The same of products of queries and keys, [keys, kQueryTile], that `to_score` (> 0) makes scores of: the weights go
// to pairs of keys, [keys in pairs, kQueryTile], rounded to bf16 (they are summed before). With dropout they are
// dropped by `words`, [keys, kPanelColumns].
template <bool kDropout>
HWY_INLINE void softmax_in_pairs(int64_t keys, const float* products, float to_score, float dropout_p,
                                 const uint32_t* words, uint32_t* weights, float* maximum, float* sum, float* factor) {
  const hn::RebindToUnsigned<FloatTag> pairs;
  const FloatVec scale = set(to_score), limit = set(dropout_p), kept = set(1.0f / (1.0f - dropout_p));
  for (int64_t lane = 0; lane < kPanelColumns; lane += lanes()) {
    const float* column = products + lane;
    const auto at = [&](int64_t j) HWY_ATTR { return hn::LoadU(kFloat, column + j * kQueryTile); };
    const FloatVec before = hn::LoadU(kFloat, maximum + lane);
    const FloatVec highest = hn::Max(before, hn::Mul(scale, highest_of(keys, at(0), at)));
    const auto weight = [&](int64_t i, FloatVec& total) HWY_ATTR {
      const FloatVec p = power_of_two(hn::Sub(hn::Mul(at(i), scale), highest));
      total = hn::Add(total, p);
      return kDropout ? apply_dropout(p, words + i * kPanelColumns + lane, limit, kept) : p;
    };
    FloatVec even = hn::Zero(kFloat), odd = even;
    int64_t j = 0;
    for (; j + 2 <= keys; j += 2) {
      const FloatVec first = weight(j, even), second = weight(j + 1, odd);
      hn::StoreU(bf16_pairs_of(first, second), pairs, weights + j / 2 * kQueryTile + lane);
    }
    if (j < keys)
      hn::StoreU(bf16_pairs_of(weight(j, even), hn::Zero(kFloat)), pairs, weights + j / 2 * kQueryTile + lane);
    const FloatVec shrink = power_of_two(hn::Sub(before, highest));
    hn::StoreU(highest, kFloat, maximum + lane);
    hn::StoreU(hn::MulAdd(hn::LoadU(kFloat, sum + lane), shrink, hn::Add(even, odd)), kFloat, sum + lane);
    hn::StoreU(shrink, kFloat, factor + lane);
  }
}

// The tile's slices of the scratch.
struct ForwardScratch {
  float* queries;   // [panels][dim, kPanelColumns]
  float* values;    // [panels of dim][keys, kPanelColumns]
  float* sums;      // [kQueryTile, padded dim]: weights times values, not yet divided
  float* scores;    // [keys, kPanelColumns]
  uint32_t* words;  // as scores
  float* widened;   // [queries or keys, dim]: what is stored in 16 bits, in f32; not there where nothing is
  // Where products are in pairs, in the place of the former:
  float* products;    // [keys, kQueryTile]: queries times keys
  uint32_t* weights;  // [keys in pairs, kQueryTile]
  float* memory;      // of run_matmul_tile
};

HWY_INLINE ForwardScratch slice(int64_t dim, float* scratch) {
  const int64_t width = padded(dim);
  ForwardScratch s;
  s.queries = scratch;
  s.values = s.queries + kQueryTile * dim;
  s.sums = s.values + kKeyBlock * width;
  s.scores = s.sums + kQueryTile * width;
  s.words = reinterpret_cast<uint32_t*>(s.scores + kKeyBlock * kPanelColumns);
  s.widened = s.scores + 2 * kKeyBlock * kPanelColumns + kSpareWords;
  s.products = s.widened;
  s.weights = reinterpret_cast<uint32_t*>(s.products + kProductFloats);
  s.memory = s.products + kProductFloats + kHalfProductFloats;
  return s;
}

// The sums of one panel's queries meet a new maximum.
HWY_INLINE void shrink_sums(int64_t row, int64_t queries, int64_t width, const Running& running, float* sums) {
  for (int64_t i = row; i < row + queries; ++i) {
    if (running.factor[i] == 1.0f) continue;
    float* sum = sums + i * width;
    const FloatVec factor = set(running.factor[i]);
    for_vectors(width, [&](int64_t c, auto at) { at.store(hn::Mul(at.load(sum + c), factor), sum + c); });
  }
}

// One panel of queries against the keys [key_begin, key_end), which are k in f32 and whose values are packed.
HWY_INLINE void forward_block(const AttentionTile& tile, const StoredRows& k, int64_t panel, int64_t key_begin,
                              int64_t key_end, const ForwardScratch& s, Running& running) {
  const Sight& sight = tile.sight;
  const int64_t dim = tile.dim, width = padded(dim), row = panel * kPanelColumns;
  const int64_t queries = sight.panel_end(panel) - sight.panel_begin(panel);
  const int64_t keys = std::min(key_end, sight.panel_end(panel)) - key_begin;
  gemm_panel(keys, kPanelColumns, dim, BlockRows::of_rows(k.floats(), k.stride), s.queries + row * dim, s.scores,
             kPanelColumns, false);
  if (tile.softcap > 0) cap_scores(keys, tile.softcap, s.scores, kPanelColumns);
  mask_scores(sight, panel, key_begin, keys, s.scores, kPanelColumns);
  softmax_block(keys, s.scores, running.maximum + row, running.sum + row, running.factor + row);
  if (tile.dropout.p > 0) {
    draw_panel(sight, tile.dropout, panel, key_begin, keys, s.words);
    drop_block(keys, tile.dropout.p, s.words, s.scores);
  }
  shrink_sums(row, queries, width, running, s.sums);
  for (int64_t column = 0; column < width; column += kPanelColumns) {
    gemm_panel(queries, kPanelColumns, keys, BlockRows::of_columns(s.scores, kPanelColumns),
               s.values + column * (key_end - key_begin), s.sums + row * width + column, width, true);
  }
}

HWY_INLINE void forward_keys(const AttentionTile& tile, int64_t key_begin, int64_t key_end, const ForwardScratch& s,
                             Running& running) {
  const Sight& sight = tile.sight;
  pack_columns(key_end - key_begin, tile.dim, tile.v.from(key_begin), s.values);
  const StoredRows k = in_f32(key_end - key_begin, tile.dim, tile.k.from(key_begin), s.widened);
  for (int64_t panel = 0; panel < sight.panels(); ++panel) {
    if (sight.sees(sight.panel_begin(panel), sight.panel_end(panel), key_begin, key_end))
      forward_block(tile, k, panel, key_begin, key_end, s, running);
  }
}

HWY_INLINE void forward_keys_in_pairs(const AttentionTile& tile, int64_t key_begin, int64_t key_end,
                                      const ForwardScratch& s, Running& running) {
  const Sight& sight = tile.sight;
  const float p = tile.dropout.p;
  pack_pairs(tile.dim, key_end - key_begin, tile.v.from(key_begin), false, s.values);
  multiply_rows_in_pairs(tile, tile.k, key_begin, key_end, s.queries, s.products, s.memory);
  for_panels_alike(sight, key_begin, key_end, [&](int64_t first, int64_t count, int64_t keys) HWY_ATTR {
    for (int64_t panel = first; panel < first + count; ++panel) {
      const int64_t row = panel * kPanelColumns;
      float* products = s.products + row;
      const float to_score = scores_of_products(tile, keys, products, kQueryTile);
      mask_scores(sight, panel, key_begin, keys, products, kQueryTile);
      if (p > 0) draw_panel(sight, tile.dropout, panel, key_begin, keys, s.words);
      (p > 0 ? softmax_in_pairs<true> : softmax_in_pairs<false>)(keys, products, to_score, p, s.words, s.weights + row,
                                                                 running.maximum + row, running.sum + row,
                                                                 running.factor + row);
      shrink_sums(row, sight.panel_end(panel) - sight.panel_begin(panel), padded(tile.dim), running, s.sums);
    }
  });
  add_weighted_in_pairs(tile, key_begin, key_end, s.weights, s.values, s.sums);
}

void forward_tile(const AttentionTile& tile, float* scratch) {
  const Sight& sight = tile.sight;
  const int64_t dim = tile.dim, width = padded(dim);
  const bool in_pairs = attends_in_pairs(tile.q.dtype, tile.bf16);
  const ForwardScratch s = slice(dim, scratch);
  Running running;
  std::fill_n(running.maximum, kQueryTile, kNoMaximum);
  std::fill_n(running.sum, kQueryTile, 0.0f);
  std::fill_n(s.sums, sight.queries() * width, 0.0f);
  if (in_pairs)
    pack_pairs(sight.queries(), dim, tile.q, true, s.queries);
  else
    pack_queries(sight.queries(), dim, in_f32(sight.queries(), dim, tile.q, s.widened), score_factor(tile), s.queries);
  for (int64_t key_begin = sight.lowest(sight.begin, sight.end); key_begin < sight.end; key_begin += kKeyBlock) {
    const int64_t key_end = std::min(sight.end, key_begin + kKeyBlock);
    if (!sight.sees(sight.begin, sight.end, key_begin, key_end)) continue;
    in_pairs ? forward_keys_in_pairs(tile, key_begin, key_end, s, running)
             : forward_keys(tile, key_begin, key_end, s, running);
  }

  for (int64_t i = 0; i < sight.queries(); ++i) {
    const float total = running.sum[i];
    const FloatVec inverse = set(total != 0.0f ? 1.0f / total : 0.0f);
    float* from = s.sums + i * width;
    const OutputRows to = tile.out.from(i);
    float* result = to.narrow() ? from : to.floats();
    for_vectors(dim, [&](int64_t c, auto at) { at.store(hn::Mul(at.load(from + c), inverse), result + c); });
    if (to.narrow()) narrow(result, to.dtype, to.halves(), dim);
    if (tile.lse == nullptr) continue;
    tile.lse[2 * i] = total != 0.0f ? running.maximum[i] : -std::numeric_limits<float>::infinity();
    tile.lse[2 * i + 1] = total != 0.0f ? std::log2(total) : 0.0f;
  }
}

}  // namespace ingot::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ingot::kernels {
namespace {
HWY_EXPORT(forward_tile);
}  // namespace

size_t attention_forward_scratch_bytes(int64_t head_dim, DType qkv, Bf16Product bf16) {
  const int64_t width = panels_of(head_dim) * kPanelColumns;
  const auto floats =
      static_cast<size_t>(kQueryTile * (head_dim + width) + kKeyBlock * (width + 2 * kPanelColumns) + kSpareWords);
  if (attends_in_pairs(qkv, bf16))
    return (floats + static_cast<size_t>(kProductFloats + kHalfProductFloats)) * sizeof(float) +
           matmul_tile_scratch_bytes(kKeyBlock, head_dim, DType::bf16, DType::bf16);
  return (floats + static_cast<size_t>(qkv == DType::f32 ? 0 : kWidenedRows * head_dim)) * sizeof(float);
}

void run_attention_forward(const AttentionTile& tile, float* scratch) {
  HWY_DYNAMIC_DISPATCH(forward_tile)(tile, scratch);
}

}  // namespace ingot::kernels
#endif  // HWY_ONCE
