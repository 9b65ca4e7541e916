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

// Scores [keys, kPanelColumns] become 2^(score - new maximum).
HWY_INLINE void softmax_block(int64_t keys, float* scores, float* maximum, float* sum, float* factor) {
  for (int64_t lane = 0; lane < kPanelColumns; lane += lanes()) {
    float* column = scores + lane;
    const auto at = [&](int64_t j) { return hn::LoadU(kFloat, column + j * kPanelColumns); };
    const FloatVec before = hn::LoadU(kFloat, maximum + lane);
    FloatVec high0 = before, high1 = before, high2 = before, high3 = before;
    int64_t j = 0;
    for (; j + 4 <= keys; j += 4) {
      high0 = hn::Max(high0, at(j));
      high1 = hn::Max(high1, at(j + 1));
      high2 = hn::Max(high2, at(j + 2));
      high3 = hn::Max(high3, at(j + 3));
    }
    for (; j < keys; ++j) high0 = hn::Max(high0, at(j));
    const FloatVec highest = hn::Max(hn::Max(high0, high1), hn::Max(high2, high3));
    FloatVec total0 = hn::Zero(kFloat), total1 = total0;
    const auto power = [&](int64_t i) {
      const FloatVec p = power_of_two(hn::Sub(at(i), highest));
      hn::StoreU(p, kFloat, column + i * kPanelColumns);
      return p;
    };
    for (j = 0; j + 2 <= keys; j += 2) {
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
  uint16_t* weights;  // [keys, kPanelColumns]
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
  s.weights = reinterpret_cast<uint16_t*>(s.products + kPairProducts);
  s.memory = s.products + kPairProducts + kPairWeights;
  return s;
}

// Adds one panel's weights for `keys` keys, rounded to bf16, times the values of a block of them to the sums.
HWY_INLINE void add_values_in_pairs(const AttentionTile& tile, int64_t queries, int64_t keys, int64_t block_keys,
                                    const ForwardScratch& s, float* sums) {
  narrow(s.scores, DType::bf16, s.weights, keys * kPanelColumns);
  MatmulTile work;
  work.rows = queries;
  work.k = keys;
  work.a = s.weights;
  work.lda = kPanelColumns;
  work.transpose_a = true;
  work.packed_b = true;
  work.ldc = padded(tile.dim);
  work.accumulate = true;
  work.a_dtype = work.b_dtype = DType::bf16;
  work.bf16 = tile.bf16;
  // Panels of values are as deep as the block: where fewer keys are seen, each is a product of its own.
  const int64_t together = keys == block_keys ? tile.dim : kPanelColumns;
  for (int64_t column = 0; column < tile.dim; column += together) {
    work.columns = std::min(together, tile.dim - column);
    work.b = s.values + column * pairs_of(block_keys);
    work.c = sums + column;
    run_matmul_tile(work, s.memory);
  }
}

// One panel of queries against the keys [key_begin, key_end), which are k in f32 (not where products are in pairs) and
// whose values are packed.
HWY_INLINE void forward_block(const AttentionTile& tile, const StoredRows& k, int64_t panel, int64_t key_begin,
                              int64_t key_end, const ForwardScratch& s, Running& running) {
  const Sight& sight = tile.sight;
  const int64_t dim = tile.dim, width = padded(dim), row = panel * kPanelColumns;
  const int64_t queries = sight.panel_end(panel) - sight.panel_begin(panel);
  const int64_t keys = std::min(key_end, sight.panel_end(panel)) - key_begin;
  if (tile.in_pairs())
    scale_scores(keys, score_factor(tile), s.products + row, kQueryTile, s.scores, kPanelColumns);
  else
    gemm_panel(keys, kPanelColumns, dim, BlockRows::of_rows(k.floats(), k.stride), s.queries + row * dim, s.scores,
               kPanelColumns, false);
  if (tile.softcap > 0) cap_scores(keys, tile.softcap, s.scores, kPanelColumns);
  mask_scores(sight, panel, key_begin, keys, s.scores, kPanelColumns);
  softmax_block(keys, s.scores, running.maximum + row, running.sum + row, running.factor + row);
  if (tile.dropout.p > 0) {
    draw_panel(sight, tile.dropout, panel, key_begin, keys, s.words);
    drop_block(keys, tile.dropout.p, s.words, s.scores);
  }
  for (int64_t i = row; i < row + queries; ++i) {
    if (running.factor[i] == 1.0f) continue;
    float* sum = s.sums + i * width;
    const FloatVec factor = set(running.factor[i]);
    for_vectors(width, [&](int64_t c, auto at) { at.store(hn::Mul(at.load(sum + c), factor), sum + c); });
  }
  if (tile.sums_in_pairs())
    return add_values_in_pairs(tile, queries, keys, key_end - key_begin, s, s.sums + row * width);
  for (int64_t column = 0; column < width; column += kPanelColumns) {
    gemm_panel(queries, kPanelColumns, keys, BlockRows::of_columns(s.scores, kPanelColumns),
               s.values + column * (key_end - key_begin), s.sums + row * width + column, width, true);
  }
}

void forward_tile(const AttentionTile& tile, float* scratch) {
  const Sight& sight = tile.sight;
  const int64_t dim = tile.dim, width = padded(dim);
  const ForwardScratch s = slice(dim, scratch);
  Running running;
  std::fill_n(running.maximum, kQueryTile, kNoMaximum);
  std::fill_n(running.sum, kQueryTile, 0.0f);
  std::fill_n(s.sums, sight.queries() * width, 0.0f);
  if (tile.in_pairs())
    pack_pairs(sight.queries(), dim, tile.q, true, s.queries);
  else
    pack_queries(sight.queries(), dim, in_f32(sight.queries(), dim, tile.q, s.widened), score_factor(tile), s.queries);
  for (int64_t key_begin = sight.lowest(sight.begin, sight.end); key_begin < sight.end; key_begin += kKeyBlock) {
    const int64_t key_end = std::min(sight.end, key_begin + kKeyBlock);
    if (!sight.sees(sight.begin, sight.end, key_begin, key_end)) continue;
    StoredRows k = tile.k.from(key_begin);
    if (tile.sums_in_pairs())
      pack_pairs(dim, key_end - key_begin, tile.v.from(key_begin), false, s.values);
    else
      pack_columns(key_end - key_begin, dim, tile.v.from(key_begin), s.values);
    if (tile.in_pairs())
      multiply_in_pairs(tile, tile.k, key_begin, key_end, s.queries, s.products, s.memory);
    else
      k = in_f32(key_end - key_begin, dim, k, s.widened);
    for (int64_t panel = 0; panel < sight.panels(); ++panel) {
      if (sight.sees(sight.panel_begin(panel), sight.panel_end(panel), key_begin, key_end))
        forward_block(tile, k, panel, key_begin, key_end, s, running);
    }
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
  if (qkv == DType::f32) return floats * sizeof(float);
  if (qkv == DType::f16 || bf16 == Bf16Product::widened)
    return (floats + static_cast<size_t>(kWidenedRows * head_dim)) * sizeof(float);
  return (floats + static_cast<size_t>(kPairProducts + kPairWeights)) * sizeof(float) +
         matmul_tile_scratch_bytes(kWidenedRows, DType::bf16, DType::bf16);
}

void run_attention_forward(const AttentionTile& tile, float* scratch) {
  HWY_DYNAMIC_DISPATCH(forward_tile)(tile, scratch);
}

}  // namespace ingot::kernels
#endif  // HWY_ONCE
