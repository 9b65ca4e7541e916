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
#include "kernels/layout/half-inl.h"
#include "kernels/matmul/gemm-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ingot::kernels::HWY_NAMESPACE {

// Far below every score, so that 2^(kMaskedScore - maximum) is 0; finite, so that no difference of two is NaN.
inline constexpr float kMaskedScore = -2e38f;
inline constexpr float kNoMaximum = -1e30f;

constexpr int64_t padded(int64_t columns) {
  return panels_of(columns) * kPanelColumns;
}

// Scores are kept in units of log2: a power of two needs no multiplication to reduce its argument.
inline constexpr float kLog2E = 1.44269504088896341f;

// 2^t for t <= 0 (and a little above), within 3 ulp; 0 instead of a denormal number. NaN stays NaN. The polynomial is
// the minimax one of degree 5 on [-0.5, 0.5].
HWY_INLINE FloatVec power_of_two(FloatVec t) {
  const FloatVec least = set(-126.0f);
  const FloatVec clamped = hn::Max(least, t);  // the second operand where it is NaN
  const FloatVec n = hn::Round(clamped);
  const FloatVec p = polynomial(hn::Sub(clamped, n), 1.3276471998e-3f, 9.6755413344e-3f, 5.5507132735e-2f,
                                2.4022119724e-1f, 6.9314696706e-1f, 1.0000000717f);
#if HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86
  const FloatVec result{_mm512_scalef_ps(p.raw, n.raw)};
#else
  const auto exponent = hn::ShiftLeft<23>(hn::Add(hn::ConvertTo(kInt, n), hn::Set(kInt, 127)));
  const FloatVec result = hn::Mul(p, hn::BitCast(kFloat, exponent));
#endif
  return hn::IfThenZeroElse(hn::Lt(t, least), result);
}

// The first `rows` rows in f32: where they lie, or widened into the buffer [rows, dim].
HWY_INLINE StoredRows in_f32(int64_t rows, int64_t dim, const StoredRows& x, float* buffer) {
  if (!x.narrow()) return x;
  for (int64_t i = 0; i < rows; ++i) widen(x.halves() + i * x.stride, x.dtype, buffer + i * dim, dim);
  return {buffer, dim, DType::f32};
}

// Panels [dim, kPanelColumns] of transposed, scaled queries, which are in f32.
HWY_INLINE void pack_queries(int64_t queries, int64_t dim, const StoredRows& q, float scale, float* panels) {
  for (int64_t begin = 0; begin < queries; begin += kPanelColumns) {
    float* panel = panels + begin * dim;
    pack_panel_transposed(dim, std::min(kPanelColumns, queries - begin), q.floats() + begin * q.stride, q.stride,
                          panel);
    for_vectors(dim * kPanelColumns,
                [&](int64_t i, auto at) { at.store(hn::Mul(at.load(panel + i), set(scale)), panel + i); });
  }
}

// What queries are multiplied by: scores come out of the product in units of log2 or, where there is a cap, of the cap.
inline float score_factor(const AttentionTile& tile) {
  return tile.scale * (tile.softcap > 0 ? 1.0f / tile.softcap : kLog2E);
}

// Scores [keys, ...] of one panel's queries in units of the cap become capped ones in units of log2.
HWY_INLINE void cap_scores(int64_t keys, float softcap, float* scores, int64_t stride) {
  const FloatVec factor = set(softcap * kLog2E);
  for (int64_t j = 0; j < keys; ++j)
    for (int64_t lane = 0; lane < kPanelColumns; lane += lanes()) {
      float* at = scores + j * stride + lane;
      hn::StoreU(hn::Mul(vector_tanh(hn::LoadU(kFloat, at)), factor), kFloat, at);
    }
}

// Products [keys, ...] of one panel's queries and keys become scores in units of log2, or stay products that the
// result, a factor, makes scores of.
HWY_INLINE float scores_of_products(const AttentionTile& tile, int64_t keys, float* products, int64_t stride) {
  if (tile.softcap <= 0) return score_factor(tile);
  const FloatVec factor = set(score_factor(tile));
  for (int64_t j = 0; j < keys; ++j)
    for (int64_t lane = 0; lane < kPanelColumns; lane += lanes()) {
      float* at = products + j * stride + lane;
      hn::StoreU(hn::Mul(hn::LoadU(kFloat, at), factor), kFloat, at);
    }
  cap_scores(keys, tile.softcap, products, stride);
  return 1.0f;
}

// Panels of queries or, not transposed, of values, in pairs (panels.h).
inline void pack_pairs(int64_t columns, int64_t depth, const StoredRows& x, bool transposed, float* panels) {
  pack_panels({reinterpret_cast<std::byte*>(panels), DType::bf16, depth, columns}, x.data, DType::bf16, x.stride,
              transposed, {0, depth});
}

// body(first panel, panels, keys) for runs of panels of queries that see as many of the keys [key_begin, key_end), from
// key_begin on.
template <class Body>
inline void for_panels_alike(const Sight& sight, int64_t key_begin, int64_t key_end, Body body) {
  const auto keys_of = [&](int64_t panel) -> int64_t {
    const int64_t from = sight.panel_begin(panel), to = sight.panel_end(panel);
    return sight.sees(from, to, key_begin, key_end) ? std::min(key_end, to) - key_begin : 0;
  };
  for (int64_t panel = 0, end = 0; panel < sight.panels(); panel = end) {
    const int64_t keys = keys_of(panel);
    for (end = panel + 1; end < sight.panels() && keys_of(end) == keys;) ++end;
    if (keys > 0) body(panel, end - panel, keys);
  }
}

// What products of two bf16 operands of a tile have in common; B is packed.
inline MatmulTile pair_product(const AttentionTile& tile) {
  MatmulTile work;
  work.packed_b = true;
  work.a_dtype = work.b_dtype = DType::bf16;
  work.bf16 = tile.bf16;
  return work;
}

// Products [keys, kQueryTile] of k's or v's rows from key_begin with those of the queries or of dout, packed in pairs.
inline void multiply_rows_in_pairs(const AttentionTile& tile, const StoredRows& rows, int64_t key_begin,
                                   int64_t key_end, const float* panels, float* products, float* memory) {
  MatmulTile work = pair_product(tile);
  work.k = tile.dim;
  work.a = rows.from(key_begin).data;
  work.lda = rows.stride;
  work.ldc = kQueryTile;
  for_panels_alike(tile.sight, key_begin, key_end, [&](int64_t panel, int64_t count, int64_t keys) {
    work.rows = keys;
    work.columns = count * kPanelColumns;
    work.b = panels + panel * kPanelColumns * pairs_of(tile.dim);
    work.c = products + panel * kPanelColumns;
    run_matmul_tile(work, memory);
  });
}

// Adds weights for the keys, [keys in pairs, kQueryTile], times what each key has, [keys, dim] in panels of pairs, to
// sums [queries, padded dim].
inline void add_weighted_in_pairs(const AttentionTile& tile, int64_t key_begin, int64_t key_end,
                                  const uint32_t* weights, const float* panels, float* sums) {
  MatmulTile work = pair_product(tile);
  work.columns = tile.dim;
  work.lda = kQueryTile;
  work.paired_a = true;
  work.b = panels;
  work.packed_k = key_end - key_begin;
  work.ldc = padded(tile.dim);
  work.accumulate = true;
  for_panels_alike(tile.sight, key_begin, key_end, [&](int64_t panel, int64_t count, int64_t keys) {
    const int64_t row = panel * kPanelColumns;
    work.rows = std::min(count * kPanelColumns, tile.sight.queries() - row);
    work.k = keys;
    work.a = weights + row;
    work.c = sums + row * work.ldc;
    run_matmul_tile(work, nullptr);
  });
}

// Panels [rows, kPanelColumns] of the columns of x [rows, dim].
HWY_INLINE void pack_columns(int64_t rows, int64_t dim, const StoredRows& x, float* panels) {
  for (int64_t column = 0; column < dim; column += kPanelColumns) {
    const int64_t columns = std::min(kPanelColumns, dim - column);
    float* panel = panels + column * rows;
    if (!x.narrow()) {
      pack_panel(rows, columns, x.floats() + column, x.stride, panel);
      continue;
    }
    for (int64_t i = 0; i < rows; ++i, panel += kPanelColumns) {
      widen(x.halves() + i * x.stride + column, x.dtype, panel, columns);
      std::fill(panel + columns, panel + kPanelColumns, 0.0f);
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
inline void draw_panel(const Sight& sight, const DropoutPlace& dropout, int64_t panel, int64_t key_begin, int64_t keys,
                       uint32_t* words) {
  static_assert(kKeyBlock <= kDropoutChunk);
  uint32_t buffer[kDropoutBits];
  for (int64_t i = sight.panel_begin(panel); i < sight.panel_end(panel); ++i) {
    const int64_t first = dropout.first + (i - sight.begin) * dropout.stride + key_begin;
    const uint32_t* bits = draw_bits(dropout.key, dropout.counter, first, keys, buffer);
    uint32_t* column = words + (i - sight.panel_begin(panel));
    for (int64_t j = 0; j < keys; ++j) column[j * kPanelColumns] = bits[j];
  }
}

}  // namespace ingot::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // INGOT_KERNELS_ATTENTION_INL_H_
