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

// Scores [keys, kPanelColumns] become exp(score - new maximum).
HWY_INLINE void softmax_block(int64_t keys, float* scores, float* maximum, float* sum, float* factor) {
  for (int64_t lane = 0; lane < kPanelColumns; lane += lanes()) {
    const FloatVec before = hn::LoadU(kFloat, maximum + lane);
    FloatVec highest = before;
    for (int64_t j = 0; j < keys; ++j) highest = hn::Max(highest, hn::LoadU(kFloat, scores + j * kPanelColumns + lane));
    FloatVec total = hn::Zero(kFloat);
    for (int64_t j = 0; j < keys; ++j) {
      float* at = scores + j * kPanelColumns + lane;
      const FloatVec p = vector_exp(hn::Sub(hn::LoadU(kFloat, at), highest));
      total = hn::Add(total, p);
      hn::StoreU(p, kFloat, at);
    }
    const FloatVec shrink = vector_exp(hn::Sub(before, highest));
    hn::StoreU(highest, kFloat, maximum + lane);
    hn::StoreU(hn::MulAdd(hn::LoadU(kFloat, sum + lane), shrink, total), kFloat, sum + lane);
    hn::StoreU(shrink, kFloat, factor + lane);
  }
}

HWY_INLINE void drop_block(int64_t keys, float p, const uint32_t* words, float* weights) {
  const FloatVec limit = set(p), scale = set(1.0f / (1.0f - p));
  for_vectors(keys * kPanelColumns, [&](int64_t i, auto at) {
    at.store(apply_dropout(at.load(weights + i), words + i, limit, scale), weights + i);
  });
}

void forward_tile(const AttentionShape& shape, const AttentionTile& tile, const AttentionInputs& inputs, float* out,
                  float* lse, float* scratch) {
  const int64_t dim = shape.head_dim, width = padded(dim), kv_head = tile.head / (shape.heads / shape.kv_heads);
  const int64_t first_token = tile.batch * shape.tokens;
  const float* q = inputs.q + (first_token + tile.query_begin) * shape.q_row_stride + tile.head * dim;
  const float* k = inputs.k + first_token * shape.k_row_stride + kv_head * dim;
  const float* v = inputs.v + first_token * shape.v_row_stride + kv_head * dim;

  float* queries = scratch;                    // [panels][dim, kPanelColumns]
  float* values = queries + kQueryTile * dim;  // [panels of dim][keys, kPanelColumns]
  float* sums = values + kKeyBlock * width;    // [kQueryTile, width]
  float* scores = sums + kQueryTile * width;   // [keys, kPanelColumns]
  auto* words = reinterpret_cast<uint32_t*>(scores + kKeyBlock * kPanelColumns);  // as scores

  Sight sight;
  fill_sight(shape, tile.batch, tile.query_begin, tile.query_end, inputs.segment_start, sight);
  pack_queries(sight.queries(), dim, q, shape.q_row_stride, shape.scale, queries);
  Running running;
  std::fill_n(running.maximum, kQueryTile, kNoMaximum);
  std::fill_n(running.sum, kQueryTile, 0.0f);
  std::fill_n(sums, kQueryTile * width, 0.0f);

  const int64_t all_begin = sight.lowest(tile.query_begin, tile.query_end), all_end = tile.query_end;
  for (int64_t key_begin = all_begin; key_begin < all_end; key_begin += kKeyBlock) {
    const int64_t block_end = std::min(all_end, key_begin + kKeyBlock);
    if (!sight.sees(tile.query_begin, tile.query_end, key_begin, block_end)) continue;
    pack_columns(block_end - key_begin, dim, v + key_begin * shape.v_row_stride, shape.v_row_stride, 1.0f, values);
    for (int64_t panel = 0; panel < sight.panels(); ++panel) {
      const int64_t from = sight.panel_begin(panel), to = sight.panel_end(panel);
      if (!sight.sees(from, to, key_begin, block_end)) continue;
      const int64_t keys = std::min(block_end, to) - key_begin, row = panel * kPanelColumns;
      gemm_panel<LayoutA::rows>(keys, kPanelColumns, dim, k + key_begin * shape.k_row_stride, shape.k_row_stride,
                                queries + row * dim, scores, kPanelColumns, false);
      mask_scores(sight, panel, key_begin, keys, scores, kPanelColumns);
      softmax_block(keys, scores, running.maximum + row, running.sum + row, running.factor + row);
      if (shape.dropout_p > 0) {
        draw_panel(shape, tile, inputs.dropout, from, to, key_begin, keys, words);
        drop_block(keys, shape.dropout_p, words, scores);
      }
      for (int64_t i = row; i < row + to - from; ++i) {
        if (running.factor[i] == 1.0f) continue;
        float* sum = sums + i * width;
        for_vectors(width,
                    [&](int64_t c, auto at) { at.store(hn::Mul(at.load(sum + c), set(running.factor[i])), sum + c); });
      }
      for (int64_t column = 0; column < width; column += kPanelColumns) {
        gemm_panel<LayoutA::columns>(to - from, kPanelColumns, keys, scores, kPanelColumns,
                                     values + column * (block_end - key_begin), sums + row * width + column, width,
                                     true);
      }
    }
  }

  for (int64_t i = 0; i < sight.queries(); ++i) {
    const float total = running.sum[i], inverse = total != 0.0f ? 1.0f / total : 0.0f;
    float* to = out + (first_token + tile.query_begin + i) * shape.out_row_stride + tile.head * dim;
    const float* from = sums + i * width;
    for_vectors(dim, [&](int64_t c, auto at) { at.store(hn::Mul(at.load(from + c), set(inverse)), to + c); });
    if (!shape.need_lse) continue;
    lse[(tile.batch * shape.heads + tile.head) * shape.tokens + tile.query_begin + i] =
        total != 0.0f ? running.maximum[i] + std::log(total) : -std::numeric_limits<float>::infinity();
  }
}

}  // namespace ingot::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ingot::kernels {
namespace {
HWY_EXPORT(forward_tile);
}  // namespace

size_t attention_forward_scratch_bytes(const AttentionShape& shape) {
  const int64_t dim = shape.head_dim, width = panels_of(dim) * kPanelColumns;
  const int64_t spare = 64;  // random words are read by whole vectors
  return static_cast<size_t>(kQueryTile * (dim + width) + kKeyBlock * (width + 2 * kPanelColumns) + spare) *
         sizeof(float);
}

void run_attention_forward(const AttentionShape& shape, const AttentionTile& tile, const AttentionInputs& inputs,
                           float* out, float* lse, float* scratch) {
  HWY_DYNAMIC_DISPATCH(forward_tile)(shape, tile, inputs, out, lse, scratch);
}

}  // namespace ingot::kernels
#endif  // HWY_ONCE
