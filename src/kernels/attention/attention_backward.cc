#include "kernels/attention/attention_tiles.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/attention/attention_backward.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/attention/attention-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ingot::kernels::HWY_NAMESPACE {

// Slices of the scratch, all per tile of queries or block of keys.
struct BackwardScratch {
  float* query_rows;    // [panels of dim][queries, kPanelColumns]: q
  float* dout_rows;     // the same of dout
  float* query_panels;  // [panels of queries][dim, kPanelColumns]: scaled q, transposed
  float* dout_panels;   // the same of dout
  float* key_rows;      // [panels of dim][keys, kPanelColumns]: k
  float* dq;            // [kQueryTile, padded dim]
  float* weights;       // [keys, kQueryTile]: probabilities, after dropout
  float* dscores;       // [keys, kQueryTile]: of the unscaled products of q and k
  uint32_t* words;      // [keys, kPanelColumns]
  // [queries or keys, dim] each: what is stored in 16 bits, in f32; not there where nothing is.
  float *widened, *widened_too;
  float* memory;  // of run_matmul_tile, where products are in pairs
};

HWY_INLINE BackwardScratch slice(int64_t dim, float* scratch) {
  const int64_t width = padded(dim);
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
  s.widened = s.dscores + kKeyBlock * kQueryTile + kKeyBlock * kPanelColumns + kSpareWords;
  s.widened_too = s.widened + kWidenedRows * dim;
  s.memory = s.widened_too + kWidenedRows * dim;
  return s;
}

// Of each query: the two parts of its lse, and dout . out.
struct RowStatistics {
  const float *maximum, *log_sum, *delta;
  RowStatistics from(int64_t query) const { return {maximum + query, log_sum + query, delta + query}; }
};

// 1 - tanh^2 from a capped score, with `to_tanh` one over the cap in the score's units; 0 for masked ones.
HWY_INLINE FloatVec slope_of_cap(FloatVec score, float to_tanh) {
  const FloatVec t = hn::Max(set(-1.0f), hn::Mul(score, set(to_tanh)));
  return hn::NegMulAdd(t, t, set(1.0f));
}

// Scores and d(weights) of one panel become weights and d(scores): with P = 2^((score - maximum) - log_sum), dS =
// scale * P * (dP - delta), and where scores are capped their slope on top. Masked scores give P = 0.
template <bool kDropout, bool kCapped>
HWY_INLINE void softmax_gradient(int64_t keys, const AttentionTile& tile, const RowStatistics& row,
                                 const uint32_t* words, float* weights, float* dscores) {
  const float dropout_p = kDropout ? tile.dropout.p : 0.0f, score_scale = tile.scale;
  const float to_tanh = kCapped ? 1.0f / (tile.softcap * kLog2E) : 0.0f;
  const FloatVec limit = set(dropout_p), scale = set(1.0f / (1.0f - dropout_p)), outer = set(score_scale);
  for (int64_t lane = 0; lane < kPanelColumns; lane += lanes()) {
    const FloatVec maximum = hn::LoadU(kFloat, row.maximum + lane), log_sum = hn::LoadU(kFloat, row.log_sum + lane);
    const FloatVec mean = hn::LoadU(kFloat, row.delta + lane);
    for (int64_t j = 0; j < keys; ++j) {
      float* weight_at = weights + j * kQueryTile + lane;
      float* dscore_at = dscores + j * kQueryTile + lane;
      const FloatVec score = hn::LoadU(kFloat, weight_at);
      FloatVec weight = power_of_two(hn::Sub(hn::Sub(score, maximum), log_sum));
      FloatVec dweight = hn::LoadU(kFloat, dscore_at);
      FloatVec kept = weight;
      if (kCapped) kept = hn::Mul(kept, slope_of_cap(score, to_tanh));
      if (kDropout) {
        const uint32_t* bits = words + j * kPanelColumns + lane;
        weight = apply_dropout(weight, bits, limit, scale);
        dweight = apply_dropout(dweight, bits, limit, scale);
      }
      hn::StoreU(weight, kFloat, weight_at);
      hn::StoreU(hn::Mul(hn::Mul(kept, outer), hn::Sub(dweight, mean)), kFloat, dscore_at);
    }
  }
}

// One block of keys [key_begin, key_end) against a tile of queries.
HWY_INLINE void backward_block(const AttentionGradientTile& work, const RowStatistics& rows, int64_t key_begin,
                               int64_t key_end, const AttentionBackwardUnit& unit, const BackwardScratch& s) {
  const AttentionTile& tile = work.tile;
  const Sight& sight = tile.sight;
  const int64_t dim = tile.dim, width = padded(dim), keys = key_end - key_begin, queries = sight.queries();
  StoredRows k = tile.k.from(key_begin), v = tile.v.from(key_begin);
  if (tile.in_pairs())
    multiply_in_pairs(tile, tile.k, key_begin, key_end, s.query_panels, s.weights, s.memory);
  else
    k = in_f32(keys, dim, k, s.widened);
  if (work.dweights_in_pairs())
    multiply_in_pairs(tile, tile.v, key_begin, key_end, s.dout_panels, s.dscores, s.memory);
  else
    v = in_f32(keys, dim, v, s.widened_too);
  pack_columns(keys, dim, k, s.key_rows);
  for (int64_t panel = 0; panel < sight.panels(); ++panel) {
    const int64_t from = sight.panel_begin(panel), to = sight.panel_end(panel), column = panel * kPanelColumns;
    float* weights = s.weights + column;
    float* dscores = s.dscores + column;
    const int64_t seen = sight.sees(from, to, key_begin, key_end) ? std::min(key_end, to) - key_begin : 0;
    // Below, keys go by in runs; a run reads the panels that reach beyond its first key.
    const int64_t read = std::min(keys, padded(std::max<int64_t>(0, to - key_begin)));
    for (int64_t j = seen; j < read; ++j) {
      std::fill_n(weights + j * kQueryTile, kPanelColumns, 0.0f);
      std::fill_n(dscores + j * kQueryTile, kPanelColumns, 0.0f);
    }
    if (seen == 0) continue;
    if (tile.in_pairs())
      scale_scores(seen, score_factor(tile), weights, kQueryTile, weights, kQueryTile);
    else
      gemm_panel(seen, kPanelColumns, dim, BlockRows::of_rows(k.floats(), k.stride), s.query_panels + column * dim,
                 weights, kQueryTile, false);
    if (!work.dweights_in_pairs())
      gemm_panel(seen, kPanelColumns, dim, BlockRows::of_rows(v.floats(), v.stride), s.dout_panels + column * dim,
                 dscores, kQueryTile, false);
    if (tile.softcap > 0) cap_scores(seen, tile.softcap, weights, kQueryTile);
    mask_scores(sight, panel, key_begin, seen, weights, kQueryTile);
    if (tile.dropout.p > 0) draw_panel(sight, tile.dropout, panel, key_begin, seen, s.words);
    const auto gradient = tile.dropout.p > 0
                              ? (tile.softcap > 0 ? softmax_gradient<true, true> : softmax_gradient<true, false>)
                              : (tile.softcap > 0 ? softmax_gradient<false, true> : softmax_gradient<false, false>);
    gradient(seen, tile, rows.from(column), s.words, weights, dscores);
    for (int64_t c = 0; c < width; c += kPanelColumns) {
      gemm_panel(to - from, kPanelColumns, seen, BlockRows::of_columns(dscores, kQueryTile), s.key_rows + c * keys,
                 s.dq + column * width + c, width, true);
    }
  }
  // Keys from the tile's own queries on are seen by fewer of them: in short runs of keys, each from its first query.
  for (int64_t j = 0; j < keys; j += kPanelColumns) {
    const int64_t count = std::min(kPanelColumns, keys - j), key = key_begin + j;
    const int64_t skip = std::max<int64_t>(0, key - sight.begin);
    for (int64_t c = 0; c < dim; c += kPanelColumns) {
      const int64_t columns = std::min(kPanelColumns, dim - c), from = skip * kPanelColumns + c * queries;
      gemm_panel(count, columns, queries - skip, BlockRows::of_rows(s.weights + j * kQueryTile + skip, kQueryTile),
                 s.dout_rows + from, unit.dv + key * unit.dv_stride + c, unit.dv_stride, true);
      gemm_panel(count, columns, queries - skip, BlockRows::of_rows(s.dscores + j * kQueryTile + skip, kQueryTile),
                 s.query_rows + from, unit.dk + key * unit.dk_stride + c, unit.dk_stride, true);
    }
  }
}

HWY_INLINE void backward_tile(const AttentionGradientTile& work, const AttentionBackwardUnit& unit,
                              const BackwardScratch& s) {
  const AttentionTile& tile = work.tile;
  const Sight& sight = tile.sight;
  const int64_t dim = tile.dim, width = padded(dim), queries = sight.queries();
  const StoredRows q = in_f32(queries, dim, tile.q, s.widened);
  if (tile.in_pairs())
    pack_pairs(queries, dim, tile.q, true, s.query_panels);
  else
    pack_queries(queries, dim, q, score_factor(tile), s.query_panels);
  pack_columns(queries, dim, q, s.query_rows);
  const StoredRows out = in_f32(queries, dim, work.out, s.widened),
                   dout = in_f32(queries, dim, work.dout, s.widened_too);
  if (work.dweights_in_pairs())
    pack_pairs(queries, dim, work.dout, true, s.dout_panels);
  else
    pack_queries(queries, dim, dout, 1.0f, s.dout_panels);
  pack_columns(queries, dim, dout, s.dout_rows);
  std::fill_n(s.dq, queries * width, 0.0f);

  float delta[kQueryTile] = {}, maximum[kQueryTile] = {}, log_sum[kQueryTile] = {};
  for (int64_t i = 0; i < queries; ++i) {
    const float *row = out.from(i).floats(), *drow = dout.from(i).floats();
    delta[i] = sum_vectors(dim, [&](int64_t c, auto at) { return hn::Mul(at.load(row + c), at.load(drow + c)); });
    // A row that sees nothing has -infinity; any finite number leaves its masked weights 0.
    maximum[i] = work.lse[2 * i] < kNoMaximum ? 0.0f : work.lse[2 * i];
    log_sum[i] = work.lse[2 * i + 1];
  }
  for (int64_t key_begin = sight.lowest(sight.begin, sight.end); key_begin < sight.end; key_begin += kKeyBlock) {
    const int64_t key_end = std::min(sight.end, key_begin + kKeyBlock);
    if (sight.sees(sight.begin, sight.end, key_begin, key_end))
      backward_block(work, {maximum, log_sum, delta}, key_begin, key_end, unit, s);
  }
  for (int64_t i = 0; i < queries; ++i) {
    const float* from = s.dq + i * width;
    const OutputRows row = work.dq.from(i);
    if (row.narrow()) {
      narrow(from, row.dtype, row.halves(), dim);
      continue;
    }
    float* to = row.floats();
    for_vectors(dim, [&](int64_t c, auto at) { at.store(at.load(from + c), to + c); });
  }
}

// Zero just before they are first added to, while they are on their way into cache.
HWY_INLINE void zero_gradients(const AttentionBackwardUnit& unit, int64_t dim, int64_t begin, int64_t end) {
  for (int64_t j = begin; j < end; ++j) {
    std::fill_n(unit.dk + j * unit.dk_stride, dim, 0.0f);
    std::fill_n(unit.dv + j * unit.dv_stride, dim, 0.0f);
  }
}

void backward_unit(const AttentionBackwardUnit& unit, int64_t dim, float* scratch) {
  const BackwardScratch slices = slice(dim, scratch);
  int64_t zeroed = 0;
  for (int64_t head = unit.head_begin; head < unit.head_end; ++head) {
    for (int64_t begin = unit.query_begin; begin < unit.query_end; begin += kQueryTile) {
      const int64_t end = std::min(unit.query_end, begin + kQueryTile);
      zero_gradients(unit, dim, zeroed, end);
      zeroed = std::max(zeroed, end);
      backward_tile(unit.tile_of(head, begin, end), unit, slices);
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

size_t attention_backward_scratch_bytes(int64_t head_dim, DType qkv, DType out, Bf16Product bf16) {
  const int64_t width = panels_of(head_dim) * kPanelColumns;
  const int64_t widened = qkv == DType::f32 && out == DType::f32 ? 0 : 2 * kWidenedRows * head_dim;
  const bool in_pairs = qkv == DType::bf16 && bf16 != Bf16Product::widened;
  return static_cast<size_t>(kQueryTile * (3 * width + 2 * head_dim) +
                             kKeyBlock * (width + 2 * kQueryTile + kPanelColumns) + kSpareWords + widened) *
             sizeof(float) +
         (in_pairs ? matmul_tile_scratch_bytes(kKeyBlock, DType::bf16, DType::bf16) : 0);
}

void run_attention_backward(const AttentionBackwardUnit& unit, int64_t head_dim, float* scratch) {
  HWY_DYNAMIC_DISPATCH(backward_unit)(unit, head_dim, scratch);
}

void add_rows(int64_t rows, int64_t columns, const float* from, int64_t from_stride, float* to, int64_t to_stride) {
  HWY_DYNAMIC_DISPATCH(add_all)(rows, columns, from, from_stride, to, to_stride);
}

}  // namespace ingot::kernels
#endif  // HWY_ONCE
