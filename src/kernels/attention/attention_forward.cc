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
};

// One panel of queries against the keys [key_begin, key_end), whose values are packed.
HWY_INLINE void forward_block(const AttentionTile& tile, int64_t panel, int64_t key_begin, int64_t key_end,
                              const ForwardScratch& s, Running& running) {
  const Sight& sight = tile.sight;
  const int64_t dim = tile.dim, width = padded(dim), row = panel * kPanelColumns;
  const int64_t queries = sight.panel_end(panel) - sight.panel_begin(panel);
  const int64_t keys = std::min(key_end, sight.panel_end(panel)) - key_begin;
  gemm_panel<LayoutA::rows>(keys, kPanelColumns, dim, tile.k + key_begin * tile.k_stride, tile.k_stride,
                            s.queries + row * dim, s.scores, kPanelColumns, false);
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
  for (int64_t column = 0; column < width; column += kPanelColumns) {
    gemm_panel<LayoutA::columns>(queries, kPanelColumns, keys, s.scores, kPanelColumns,
                                 s.values + column * (key_end - key_begin), s.sums + row * width + column, width, true);
  }
}

void forward_tile(const AttentionTile& tile, float* scratch) {
  const Sight& sight = tile.sight;
  const int64_t dim = tile.dim, width = padded(dim);
  ForwardScratch s;
  s.queries = scratch;
  s.values = s.queries + kQueryTile * dim;
  s.sums = s.values + kKeyBlock * width;
  s.scores = s.sums + kQueryTile * width;
  s.words = reinterpret_cast<uint32_t*>(s.scores + kKeyBlock * kPanelColumns);

  Running running;
  std::fill_n(running.maximum, kQueryTile, kNoMaximum);
  std::fill_n(running.sum, kQueryTile, 0.0f);
  std::fill_n(s.sums, sight.queries() * width, 0.0f);
  pack_queries(sight.queries(), dim, tile.q, tile.q_stride, score_factor(tile), s.queries);
  for (int64_t key_begin = sight.lowest(sight.begin, sight.end); key_begin < sight.end; key_begin += kKeyBlock) {
    const int64_t key_end = std::min(sight.end, key_begin + kKeyBlock);
    if (!sight.sees(sight.begin, sight.end, key_begin, key_end)) continue;
    pack_columns(key_end - key_begin, dim, tile.v + key_begin * tile.v_stride, tile.v_stride, s.values);
    for (int64_t panel = 0; panel < sight.panels(); ++panel) {
      if (sight.sees(sight.panel_begin(panel), sight.panel_end(panel), key_begin, key_end))
        forward_block(tile, panel, key_begin, key_end, s, running);
    }
  }

  for (int64_t i = 0; i < sight.queries(); ++i) {
    const float total = running.sum[i];
    const FloatVec inverse = set(total != 0.0f ? 1.0f / total : 0.0f);
    float* to = tile.out + i * tile.out_stride;
    const float* from = s.sums + i * width;
    for_vectors(dim, [&](int64_t c, auto at) { at.store(hn::Mul(at.load(from + c), inverse), to + c); });
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

size_t attention_forward_scratch_bytes(int64_t head_dim) {
  const int64_t width = panels_of(head_dim) * kPanelColumns;
  const int64_t spare = 64;  // random words are read by whole vectors
  return static_cast<size_t>(kQueryTile * (head_dim + width) + kKeyBlock * (width + 2 * kPanelColumns) + spare) *
         sizeof(float);
}

void run_attention_forward(const AttentionTile& tile, float* scratch) {
  HWY_DYNAMIC_DISPATCH(forward_tile)(tile, scratch);
}

}  // namespace ingot::kernels
#endif  // HWY_ONCE
