#include "kernels/attention/attention_tiles.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/attention/attention_backward.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/attention/attention-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ingot::kernels::HWY_NAMESPACE {

// Slices of the scratch, all per tile of queries or block of keys. In pairs, panels hold pairs of their rows in half
// the room.
struct BackwardScratch {
  float* query_rows;    // [panels of dim][queries, kPanelColumns]: q
  float* dout_rows;     // the same of dout
  float* query_panels;  // [panels of queries][dim, kPanelColumns]: scaled q, transposed; in pairs q itself
  float* dout_panels;   // the same of dout
  float* key_rows;      // [panels of dim][keys, kPanelColumns]: k
  float* dq;            // [kQueryTile, padded dim]
  float* weights;       // [keys, kQueryTile]: scores, then probabilities after dropout
  float* dscores;       // [keys, kQueryTile]: of weights, then of the unscaled products of q and k
  uint32_t* words;      // [keys, kPanelColumns]
  // [queries or keys, dim] each: what is stored in 16 bits, in f32; not there where nothing is.
  float *widened, *widened_too;
  // In pairs: probabilities and dscores in bf16, and dscores in pairs of keys, [keys in pairs, kQueryTile].
  uint16_t *half_weights, *half_dscores;
  uint32_t* paired_dscores;
  float* memory;  // of run_matmul_tile
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
  s.dscores = s.weights + kProductFloats;
  s.words = reinterpret_cast<uint32_t*>(s.dscores + kProductFloats);
  s.widened = s.dscores + kProductFloats + kKeyBlock * kPanelColumns + kSpareWords;
  s.widened_too = s.widened + kWidenedRows * dim;
  float* pairs = s.widened_too + kWidenedRows * dim;
  s.half_weights = reinterpret_cast<uint16_t*>(pairs);
  s.half_dscores = reinterpret_cast<uint16_t*>(pairs + kHalfProductFloats);
  s.paired_dscores = reinterpret_cast<uint32_t*>(pairs + 2 * kHalfProductFloats);
  s.memory = pairs + 3 * kHalfProductFloats;
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

// A weight and the gradient of its score.
struct WeightGradient {
  FloatVec weight, dscore;
};

// Of one vector of queries, all its keys. With P = 2^((score - maximum) - log_sum), dS = scale * P * (dP - delta), and
// where scores are capped their slope on top. Masked scores give P = 0.
template <bool kDropout, bool kCapped>
struct SoftmaxGradient {
  FloatVec maximum, log_sum, mean, outer, limit, kept_scale;
  float to_tanh;

  SoftmaxGradient(const AttentionTile& tile, const RowStatistics& row, int64_t lane)
      : maximum(hn::LoadU(kFloat, row.maximum + lane)),
        log_sum(hn::LoadU(kFloat, row.log_sum + lane)),
        mean(hn::LoadU(kFloat, row.delta + lane)),
        outer(set(tile.scale)),
        limit(set(kDropout ? tile.dropout.p : 0.0f)),
        kept_scale(set(1.0f / (1.0f - (kDropout ? tile.dropout.p : 0.0f)))),
        to_tanh(kCapped ? 1.0f / (tile.softcap * kLog2E) : 0.0f) {}

  HWY_INLINE WeightGradient operator()(FloatVec score, FloatVec dweight, const uint32_t* bits) const {
    FloatVec weight = power_of_two(hn::Sub(hn::Sub(score, maximum), log_sum));
    FloatVec kept = weight;
    if (kCapped) kept = hn::Mul(kept, slope_of_cap(score, to_tanh));
    if (kDropout) {
      weight = apply_dropout(weight, bits, limit, kept_scale);
      dweight = apply_dropout(dweight, bits, limit, kept_scale);
    }
    return {weight, hn::Mul(hn::Mul(kept, outer), hn::Sub(dweight, mean))};
  }
};

// Scores and d(weights) of one panel become weights and d(scores).
template <bool kDropout, bool kCapped>
HWY_INLINE void softmax_gradient(int64_t keys, const AttentionTile& tile, const RowStatistics& row,
                                 const uint32_t* words, float* weights, float* dscores) {
  for (int64_t lane = 0; lane < kPanelColumns; lane += lanes()) {
    const SoftmaxGradient<kDropout, kCapped> gradient(tile, row, lane);
    for (int64_t j = 0; j < keys; ++j) {
      float* weight_at = weights + j * kQueryTile + lane;
      float* dscore_at = dscores + j * kQueryTile + lane;
      const WeightGradient at =
          gradient(hn::LoadU(kFloat, weight_at), hn::LoadU(kFloat, dscore_at), words + j * kPanelColumns + lane);
      hn::StoreU(at.weight, kFloat, weight_at);
      hn::StoreU(at.dscore, kFloat, dscore_at);
    }
  }
}

// The same from products that `to_score` makes scores of, to bf16 (see BackwardScratch). The slices of s are at the
// panel.
template <bool kDropout, bool kCapped>
HWY_INLINE void softmax_gradient_in_pairs(int64_t keys, const AttentionTile& tile, const RowStatistics& row,
                                          float to_score, const BackwardScratch& s) {
  const hn::RebindToUnsigned<FloatTag> pairs;
  const FloatVec scale = set(to_score);
  for (int64_t lane = 0; lane < kPanelColumns; lane += lanes()) {
    const SoftmaxGradient<kDropout, kCapped> gradient(tile, row, lane);
    const auto of_key = [&](int64_t j) HWY_ATTR {
      const int64_t at = j * kQueryTile + lane;
      return gradient(hn::Mul(hn::LoadU(kFloat, s.weights + at), scale), hn::LoadU(kFloat, s.dscores + at),
                      s.words + j * kPanelColumns + lane);
    };
    const auto write = [&](int64_t j, const WeightGradient& even, const WeightGradient& odd) HWY_ATTR {
      const int64_t at = j * kQueryTile + lane;
      const auto weight = bf16_pairs_of(even.weight, odd.weight), dscore = bf16_pairs_of(even.dscore, odd.dscore);
      hn::StoreU(even_of(weight), kHalf, s.half_weights + at);
      hn::StoreU(even_of(dscore), kHalf, s.half_dscores + at);
      hn::StoreU(dscore, pairs, s.paired_dscores + j / 2 * kQueryTile + lane);
      if (j + 1 >= keys) return;
      hn::StoreU(odd_of(weight), kHalf, s.half_weights + at + kQueryTile);
      hn::StoreU(odd_of(dscore), kHalf, s.half_dscores + at + kQueryTile);
    };
    int64_t j = 0;
    for (; j + 2 <= keys; j += 2) write(j, of_key(j), of_key(j + 1));
    if (j < keys) write(j, of_key(j), {hn::Zero(kFloat), hn::Zero(kFloat)});
  }
}

// kernel<whether there is dropout, whether scores are capped>.
#define INGOT_SOFTMAX_GRADIENT(kernel, tile)                                              \
  ((tile).dropout.p > 0 ? ((tile).softcap > 0 ? kernel<true, true> : kernel<true, false>) \
                        : ((tile).softcap > 0 ? kernel<false, true> : kernel<false, false>))

// body(first key, keys, first query) for short runs of keys [key_begin, key_end): those from the tile's own queries on
// are seen by fewer of them, each run from its first query of the tile. Keys that all queries see go together.
template <class Body>
HWY_INLINE void for_runs_of_keys(const Sight& sight, int64_t key_begin, int64_t key_end, Body body) {
  for (int64_t key = key_begin, end = 0; key < key_end; key = end) {
    const int64_t skip = std::max<int64_t>(0, key - sight.begin);
    const int64_t together = skip > 0 ? kPanelColumns : std::max(kPanelColumns, sight.begin - key);
    end = std::min(key_end, key + together);
    body(key, end - key, skip);
  }
}

// Of how many keys from key_begin a run of keys may read the weights of a panel that ends before the query `to`.
HWY_INLINE int64_t keys_read(int64_t key_begin, int64_t keys, int64_t to) {
  return std::min(keys, padded(std::max<int64_t>(0, to - key_begin)));
}

// One block of keys [key_begin, key_end) against a tile of queries.
HWY_INLINE void backward_block(const AttentionGradientTile& work, const RowStatistics& rows, int64_t key_begin,
                               int64_t key_end, const AttentionBackwardUnit& unit, const BackwardScratch& s) {
  const AttentionTile& tile = work.tile;
  const Sight& sight = tile.sight;
  const int64_t dim = tile.dim, width = padded(dim), keys = key_end - key_begin, queries = sight.queries();
  const StoredRows k = in_f32(keys, dim, tile.k.from(key_begin), s.widened),
                   v = in_f32(keys, dim, tile.v.from(key_begin), s.widened_too);
  pack_columns(keys, dim, k, s.key_rows);
  for (int64_t panel = 0; panel < sight.panels(); ++panel) {
    const int64_t from = sight.panel_begin(panel), to = sight.panel_end(panel), column = panel * kPanelColumns;
    float* weights = s.weights + column;
    float* dscores = s.dscores + column;
    const int64_t seen = sight.sees(from, to, key_begin, key_end) ? std::min(key_end, to) - key_begin : 0;
    for (int64_t j = seen; j < keys_read(key_begin, keys, to); ++j) {
      std::fill_n(weights + j * kQueryTile, kPanelColumns, 0.0f);
      std::fill_n(dscores + j * kQueryTile, kPanelColumns, 0.0f);
    }
    if (seen == 0) continue;
    gemm_panel(seen, kPanelColumns, dim, BlockRows::of_rows(k.floats(), k.stride), s.query_panels + column * dim,
               weights, kQueryTile, false);
    gemm_panel(seen, kPanelColumns, dim, BlockRows::of_rows(v.floats(), v.stride), s.dout_panels + column * dim,
               dscores, kQueryTile, false);
    if (tile.softcap > 0) cap_scores(seen, tile.softcap, weights, kQueryTile);
    mask_scores(sight, panel, key_begin, seen, weights, kQueryTile);
    if (tile.dropout.p > 0) draw_panel(sight, tile.dropout, panel, key_begin, seen, s.words);
    INGOT_SOFTMAX_GRADIENT(softmax_gradient, tile)(seen, tile, rows.from(column), s.words, weights, dscores);
    for (int64_t c = 0; c < width; c += kPanelColumns) {
      gemm_panel(to - from, kPanelColumns, seen, BlockRows::of_columns(dscores, kQueryTile), s.key_rows + c * keys,
                 s.dq + column * width + c, width, true);
    }
  }
  for_runs_of_keys(sight, key_begin, key_end, [&](int64_t key, int64_t count, int64_t skip) HWY_ATTR {
    const int64_t at = (key - key_begin) * kQueryTile + skip;
    for (int64_t c = 0; c < dim; c += kPanelColumns) {
      const int64_t columns = std::min(kPanelColumns, dim - c), from = skip * kPanelColumns + c * queries;
      gemm_panel(count, columns, queries - skip, BlockRows::of_rows(s.weights + at, kQueryTile), s.dout_rows + from,
                 unit.dv + key * unit.dv_stride + c, unit.dv_stride, true);
      gemm_panel(count, columns, queries - skip, BlockRows::of_rows(s.dscores + at, kQueryTile), s.query_rows + from,
                 unit.dk + key * unit.dk_stride + c, unit.dk_stride, true);
    }
  });
}

// Scores and gradients of weights of one panel, as products, become probabilities and gradients of scores in bf16.
HWY_INLINE void gradients_of_scores(const AttentionTile& tile, int64_t panel, int64_t key_begin, int64_t key_end,
                                    const RowStatistics& rows, const BackwardScratch& s) {
  const Sight& sight = tile.sight;
  const int64_t from = sight.panel_begin(panel), to = sight.panel_end(panel), column = panel * kPanelColumns;
  const int64_t seen = sight.sees(from, to, key_begin, key_end) ? std::min(key_end, to) - key_begin : 0;
  BackwardScratch at = s;
  at.weights += column, at.dscores += column;
  at.half_weights += column, at.half_dscores += column, at.paired_dscores += column;
  for (int64_t j = seen; j < keys_read(key_begin, key_end - key_begin, to); ++j) {
    std::fill_n(at.half_weights + j * kQueryTile, kPanelColumns, uint16_t{0});
    std::fill_n(at.half_dscores + j * kQueryTile, kPanelColumns, uint16_t{0});
  }
  if (seen == 0) return;
  const float to_score = scores_of_products(tile, seen, at.weights, kQueryTile);
  mask_scores(sight, panel, key_begin, seen, at.weights, kQueryTile);
  if (tile.dropout.p > 0) draw_panel(sight, tile.dropout, panel, key_begin, seen, s.words);
  INGOT_SOFTMAX_GRADIENT(softmax_gradient_in_pairs, tile)(seen, tile, rows.from(column), to_score, at);
}

HWY_INLINE void backward_block_in_pairs(const AttentionGradientTile& work, const RowStatistics& rows, int64_t key_begin,
                                        int64_t key_end, const AttentionBackwardUnit& unit, const BackwardScratch& s) {
  const AttentionTile& tile = work.tile;
  const Sight& sight = tile.sight;
  const int64_t queries = sight.queries();
  pack_pairs(tile.dim, key_end - key_begin, tile.k.from(key_begin), false, s.key_rows);
  multiply_rows_in_pairs(tile, tile.k, key_begin, key_end, s.query_panels, s.weights, s.memory);
  multiply_rows_in_pairs(tile, tile.v, key_begin, key_end, s.dout_panels, s.dscores, s.memory);
  for (int64_t panel = 0; panel < sight.panels(); ++panel)
    gradients_of_scores(tile, panel, key_begin, key_end, rows, s);
  add_weighted_in_pairs(tile, key_begin, key_end, s.paired_dscores, s.key_rows, s.dq);
  MatmulTile product = pair_product(tile);
  product.columns = tile.dim;
  product.lda = kQueryTile;
  product.packed_k = queries;
  product.accumulate = true;
  for_runs_of_keys(sight, key_begin, key_end, [&](int64_t key, int64_t count, int64_t skip) HWY_ATTR {
    // A pair is not torn: the weight of a query more is 0.
    const int64_t first = skip / 2 * 2, at = (key - key_begin) * kQueryTile + first;
    const auto add = [&](const uint16_t* weights, const float* panels, float* sums, int64_t stride) HWY_ATTR {
      product.a = weights + at;
      product.b = panels + first / 2 * kPanelColumns;
      product.c = sums + key * stride;
      product.ldc = stride;
      run_matmul_tile(product, s.memory);
    };
    product.rows = count;
    product.k = queries - first;
    add(s.half_weights, s.dout_rows, unit.dv, unit.dv_stride);
    add(s.half_dscores, s.query_rows, unit.dk, unit.dk_stride);
  });
}

// What is read of queries and dout, in panels.
HWY_INLINE void pack_queries_and_dout(const AttentionGradientTile& work, bool in_pairs, const BackwardScratch& s) {
  const AttentionTile& tile = work.tile;
  const int64_t dim = tile.dim, queries = tile.sight.queries();
  if (in_pairs) {
    pack_pairs(queries, dim, tile.q, true, s.query_panels);
    pack_pairs(dim, queries, tile.q, false, s.query_rows);
    pack_pairs(queries, dim, work.dout, true, s.dout_panels);
    pack_pairs(dim, queries, work.dout, false, s.dout_rows);
    return;
  }
  const StoredRows q = in_f32(queries, dim, tile.q, s.widened);
  pack_queries(queries, dim, q, score_factor(tile), s.query_panels);
  pack_columns(queries, dim, q, s.query_rows);
  const StoredRows dout = in_f32(queries, dim, work.dout, s.widened);
  pack_queries(queries, dim, dout, 1.0f, s.dout_panels);
  pack_columns(queries, dim, dout, s.dout_rows);
}

HWY_INLINE void backward_tile(const AttentionGradientTile& work, const AttentionBackwardUnit& unit,
                              const BackwardScratch& s) {
  const AttentionTile& tile = work.tile;
  const Sight& sight = tile.sight;
  const int64_t dim = tile.dim, width = padded(dim), queries = sight.queries();
  const bool in_pairs = gradients_in_pairs(tile.q.dtype, work.dout.dtype, tile.bf16);
  pack_queries_and_dout(work, in_pairs, s);
  std::fill_n(s.dq, queries * width, 0.0f);

  const StoredRows out = in_f32(queries, dim, work.out, s.widened),
                   dout = in_f32(queries, dim, work.dout, s.widened_too);
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
    if (!sight.sees(sight.begin, sight.end, key_begin, key_end)) continue;
    const RowStatistics rows = {maximum, log_sum, delta};
    in_pairs ? backward_block_in_pairs(work, rows, key_begin, key_end, unit, s)
             : backward_block(work, rows, key_begin, key_end, unit, s);
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
  const auto floats = static_cast<size_t>(kQueryTile * (3 * width + 2 * head_dim) + 2 * kProductFloats +
                                          kKeyBlock * (width + kPanelColumns) + kSpareWords + widened);
  if (!gradients_in_pairs(qkv, out, bf16)) return floats * sizeof(float);
  return (floats + static_cast<size_t>(3 * kHalfProductFloats)) * sizeof(float) +
         matmul_tile_scratch_bytes(kKeyBlock, std::max(head_dim, kQueryTile), DType::bf16, DType::bf16);
}

void run_attention_backward(const AttentionBackwardUnit& unit, int64_t head_dim, float* scratch) {
  HWY_DYNAMIC_DISPATCH(backward_unit)(unit, head_dim, scratch);
}

void add_rows(int64_t rows, int64_t columns, const float* from, int64_t from_stride, float* to, int64_t to_stride) {
  HWY_DYNAMIC_DISPATCH(add_all)(rows, columns, from, from_stride, to, to_stride);
}

}  // namespace ingot::kernels
#endif  // HWY_ONCE
