#include "kernels/attention/attention_tiles.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/attention/attention_backward.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/attention/attention-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ingot::kernels::HWY_NAMESPACE {

// Slices of the scratch, all per tile of queries or block of keys.
struct BackwardScratch {
  float* query_rows;    // [panels of dim][queries, kPanelColumns]: scaled q
  float* dout_rows;     // the same of dout
  float* query_panels;  // [panels of queries][dim, kPanelColumns]: scaled q, transposed
  float* dout_panels;   // the same of dout
  float* key_rows;      // [panels of dim][keys, kPanelColumns]: scaled k
  float* dq;            // [kQueryTile, padded dim]
  float* weights;       // [keys, kQueryTile]: probabilities, after dropout
  float* dscores;       // [keys, kQueryTile]
  uint32_t* words;      // [keys, kPanelColumns]
};

constexpr int64_t kWordsSpare = 64;  // random words are read by whole vectors

HWY_INLINE BackwardScratch slice(const AttentionShape& shape, float* scratch) {
  const int64_t dim = shape.head_dim, width = padded(dim);
  BackwardScratch s;
  s.query_rows = scratch;
  s.dout_rows = s.query_rows + kQueryTile * width;
  s.query_panels = s.dout_rows + kQueryTile * width;
  s.dout_panels = s.query_panels + kQueryTile * dim;
  s.key_rows = s.dout_panels + kQueryTile * dim;
  s.dq = s.key_rows + kKeyBlock * width;
  s.weights = s.dq + kQueryTile * width;
  s.dscores = s.weights + kKeyBlock * kQueryTile;
  s.words = reinterpret_cast<uint32_t*>(s.dscores + kKeyBlock * kQueryTile);
  return s;
}

// Scores and d(weights) of one panel become weights and d(scores): with P = exp(score - lse), dS = P * (dP - delta).
// Masked scores give P = 0.
HWY_INLINE void softmax_gradient(int64_t keys, const float* lse, const float* delta, float dropout_p,
                                 const uint32_t* words, float* weights, float* dscores) {
  const FloatVec limit = set(dropout_p), scale = set(1.0f / (1.0f - dropout_p));
  for (int64_t lane = 0; lane < kPanelColumns; lane += lanes()) {
    const FloatVec log_sum = hn::LoadU(kFloat, lse + lane), mean = hn::LoadU(kFloat, delta + lane);
    for (int64_t j = 0; j < keys; ++j) {
      float* weight_at = weights + j * kQueryTile + lane;
      float* dscore_at = dscores + j * kQueryTile + lane;
      FloatVec weight = vector_exp(hn::Sub(hn::LoadU(kFloat, weight_at), log_sum));
      FloatVec dweight = hn::LoadU(kFloat, dscore_at);
      const FloatVec kept = weight;
      if (dropout_p > 0) {
        const uint32_t* bits = words + j * kPanelColumns + lane;
        weight = apply_dropout(weight, bits, limit, scale);
        dweight = apply_dropout(dweight, bits, limit, scale);
      }
      hn::StoreU(weight, kFloat, weight_at);
      hn::StoreU(hn::Mul(kept, hn::Sub(dweight, mean)), kFloat, dscore_at);
    }
  }
}

// One block of keys [key_begin, key_end) against the tile of `sight`. dk and dv are at key_begin.
HWY_INLINE void backward_block(const AttentionShape& shape, const AttentionTile& tile, const AttentionInputs& inputs,
                               const Sight& sight, const float* lse, const float* delta, int64_t key_begin,
                               int64_t key_end, const float* k, const float* v, const AttentionBackwardUnit& unit,
                               const BackwardScratch& s) {
  const int64_t dim = shape.head_dim, width = padded(dim), keys = key_end - key_begin, queries = sight.queries();
  pack_columns(keys, dim, k, shape.k_row_stride, shape.scale, s.key_rows);
  for (int64_t panel = 0; panel < sight.panels(); ++panel) {
    const int64_t from = sight.panel_begin(panel), to = sight.panel_end(panel), column = panel * kPanelColumns;
    float* weights = s.weights + column;
    float* dscores = s.dscores + column;
    const int64_t seen = sight.sees(from, to, key_begin, key_end) ? std::min(key_end, to) - key_begin : 0;
    for (int64_t j = seen; j < keys; ++j) {
      std::fill_n(weights + j * kQueryTile, kPanelColumns, 0.0f);
      std::fill_n(dscores + j * kQueryTile, kPanelColumns, 0.0f);
    }
    if (seen == 0) continue;
    gemm_panel<LayoutA::rows>(seen, kPanelColumns, dim, k, shape.k_row_stride, s.query_panels + column * dim, weights,
                              kQueryTile, false);
    gemm_panel<LayoutA::rows>(seen, kPanelColumns, dim, v, shape.v_row_stride, s.dout_panels + column * dim, dscores,
                              kQueryTile, false);
    mask_scores(sight, panel, key_begin, seen, weights, kQueryTile);
    if (shape.dropout_p > 0) draw_panel(shape, tile, inputs.dropout, from, to, key_begin, seen, s.words);
    softmax_gradient(seen, lse + column, delta + column, shape.dropout_p, s.words, weights, dscores);
    for (int64_t c = 0; c < width; c += kPanelColumns) {
      gemm_panel<LayoutA::columns>(to - from, kPanelColumns, seen, dscores, kQueryTile, s.key_rows + c * keys,
                                   s.dq + column * width + c, width, true);
    }
  }
  // Keys from the tile's own queries on are seen by fewer of them: in short runs of keys, each from its first query.
  for (int64_t j = 0; j < keys; j += kPanelColumns) {
    const int64_t count = std::min(kPanelColumns, keys - j);
    const int64_t skip = std::max<int64_t>(0, key_begin + j - sight.begin);
    for (int64_t c = 0; c < dim; c += kPanelColumns) {
      const int64_t columns = std::min(kPanelColumns, dim - c), from = skip * kPanelColumns + c * queries;
      gemm_panel<LayoutA::rows>(count, columns, queries - skip, s.weights + j * kQueryTile + skip, kQueryTile,
                                s.dout_rows + from, unit.dv + (key_begin + j) * unit.dv_stride + c, unit.dv_stride,
                                true);
      gemm_panel<LayoutA::rows>(count, columns, queries - skip, s.dscores + j * kQueryTile + skip, kQueryTile,
                                s.query_rows + from, unit.dk + (key_begin + j) * unit.dk_stride + c, unit.dk_stride,
                                true);
    }
  }
}

HWY_INLINE void backward_tile(const AttentionShape& shape, const AttentionTile& tile, const AttentionInputs& inputs,
                              const float* out, const float* lse, const float* dout, const AttentionBackwardUnit& unit,
                              float* dq, const BackwardScratch& s) {
  const int64_t dim = shape.head_dim, width = padded(dim), first_token = tile.batch * shape.tokens;
  const int64_t out_offset = (first_token + tile.query_begin) * shape.out_row_stride + tile.head * dim;
  const int64_t q_offset = (first_token + tile.query_begin) * shape.q_row_stride + tile.head * dim;
  const float* k = inputs.k + first_token * shape.k_row_stride + unit.kv_head * dim;
  const float* v = inputs.v + first_token * shape.v_row_stride + unit.kv_head * dim;
  Sight sight;
  fill_sight(shape, tile.batch, tile.query_begin, tile.query_end, inputs.segment_start, sight);
  const int64_t queries = sight.queries();
  pack_queries(queries, dim, inputs.q + q_offset, shape.q_row_stride, shape.scale, s.query_panels);
  pack_queries(queries, dim, dout + out_offset, shape.out_row_stride, 1.0f, s.dout_panels);
  pack_columns(queries, dim, inputs.q + q_offset, shape.q_row_stride, shape.scale, s.query_rows);
  pack_columns(queries, dim, dout + out_offset, shape.out_row_stride, 1.0f, s.dout_rows);
  std::fill_n(s.dq, queries * width, 0.0f);

  float delta[kQueryTile] = {}, log_sum[kQueryTile] = {};
  for (int64_t i = 0; i < queries; ++i) {
    const float* row = out + out_offset + i * shape.out_row_stride;
    const float* drow = dout + out_offset + i * shape.out_row_stride;
    delta[i] = sum_vectors(dim, [&](int64_t c, auto at) { return hn::Mul(at.load(row + c), at.load(drow + c)); });
    // A row that sees nothing has -infinity; any finite number leaves its masked weights 0.
    const float stored = lse[(tile.batch * shape.heads + tile.head) * shape.tokens + tile.query_begin + i];
    log_sum[i] = stored < kNoMaximum ? 0.0f : stored;
  }

  const int64_t all_begin = sight.lowest(tile.query_begin, tile.query_end);
  for (int64_t key_begin = all_begin; key_begin < tile.query_end; key_begin += kKeyBlock) {
    const int64_t key_end = std::min(tile.query_end, key_begin + kKeyBlock);
    if (!sight.sees(tile.query_begin, tile.query_end, key_begin, key_end)) continue;
    backward_block(shape, tile, inputs, sight, log_sum, delta, key_begin, key_end, k + key_begin * shape.k_row_stride,
                   v + key_begin * shape.v_row_stride, unit, s);
  }
  for (int64_t i = 0; i < queries; ++i) {
    const float* from = s.dq + i * width;
    float* to = dq + q_offset + i * shape.q_row_stride;
    for_vectors(dim, [&](int64_t c, auto at) { at.store(at.load(from + c), to + c); });
  }
}

void backward_unit(const AttentionShape& shape, const AttentionBackwardUnit& unit, const AttentionInputs& inputs,
                   const float* out, const float* lse, const float* dout, float* dq, float* scratch) {
  const BackwardScratch slices = slice(shape, scratch);
  for (int64_t j = 0; j < unit.query_end; ++j) {
    std::fill_n(unit.dk + j * unit.dk_stride, shape.head_dim, 0.0f);
    std::fill_n(unit.dv + j * unit.dv_stride, shape.head_dim, 0.0f);
  }
  const int64_t group = shape.heads / shape.kv_heads;
  for (int64_t head = unit.kv_head * group; head < (unit.kv_head + 1) * group; ++head) {
    for (int64_t begin = unit.query_begin; begin < unit.query_end; begin += kQueryTile) {
      const AttentionTile tile{unit.batch, head, begin, std::min(unit.query_end, begin + kQueryTile)};
      backward_tile(shape, tile, inputs, out, lse, dout, unit, dq, slices);
    }
  }
}

void add_all(int64_t rows, int64_t columns, const float* from, int64_t from_stride, float* to, int64_t to_stride) {
  for (int64_t i = 0; i < rows; ++i) {
    const float* source = from + i * from_stride;
    float* target = to + i * to_stride;
    for_vectors(columns,
                [&](int64_t j, auto at) { at.store(hn::Add(at.load(target + j), at.load(source + j)), target + j); });
  }
}

}  // namespace ingot::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ingot::kernels {
namespace {
HWY_EXPORT(backward_unit);
HWY_EXPORT(add_all);
}  // namespace

size_t attention_backward_scratch_bytes(const AttentionShape& shape) {
  const int64_t dim = shape.head_dim, width = panels_of(dim) * kPanelColumns, spare = 64;
  return static_cast<size_t>(kQueryTile * (3 * width + 2 * dim) + kKeyBlock * (width + 2 * kQueryTile + kPanelColumns) +
                             spare) *
         sizeof(float);
}

void run_attention_backward(const AttentionShape& shape, const AttentionBackwardUnit& unit,
                            const AttentionInputs& inputs, const float* out, const float* lse, const float* dout,
                            float* dq, float* scratch) {
  HWY_DYNAMIC_DISPATCH(backward_unit)(shape, unit, inputs, out, lse, dout, dq, scratch);
}

void add_rows(int64_t rows, int64_t columns, const float* from, int64_t from_stride, float* to, int64_t to_stride) {
  HWY_DYNAMIC_DISPATCH(add_all)(rows, columns, from, from_stride, to, to_stride);
}

}  // namespace ingot::kernels
#endif  // HWY_ONCE
