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

// Scores [keys, ...] of one panel's queries times `factor`, to another place or to the same.
HWY_INLINE void scale_scores(int64_t keys, float factor, const float* from, int64_t from_stride, float* to,
                             int64_t to_stride) {
  for (int64_t j = 0; j < keys; ++j)
    for (int64_t lane = 0; lane < kPanelColumns; lane += lanes())
      hn::StoreU(hn::Mul(hn::LoadU(kFloat, from + j * from_stride + lane), set(factor)), kFloat,
                 to + j * to_stride + lane);
}

// Panels of queries or, not transposed, of values, in pairs (panels.h).
inline void pack_pairs(int64_t columns, int64_t depth, const StoredRows& x, bool transposed, float* panels) {
  pack_panels({reinterpret_cast<std::byte*>(panels), DType::bf16, depth, columns}, x.data, DType::bf16, x.stride,
              transposed, {0, depth});
}

// Products [keys, kQueryTile] of k's or v's rows from key_begin with those of the queries or of dout, packed in pairs;
// the panels that see as many keys go together.
inline void multiply_in_pairs(const AttentionTile& tile, const StoredRows& rows, int64_t key_begin, int64_t key_end,
                              const float* panels, float* products, float* memory) {
  const Sight& sight = tile.sight;
  const auto keys_of = [&](int64_t panel) -> int64_t {
    const int64_t from = sight.panel_begin(panel), to = sight.panel_end(panel);
    return sight.sees(from, to, key_begin, key_end) ? std::min(key_end, to) - key_begin : 0;
  };
  MatmulTile work;
  work.k = tile.dim;
  work.a = rows.from(key_begin).data;
  work.lda = rows.stride;
  work.packed_b = true;
  work.ldc = kQueryTile;
  work.a_dtype = work.b_dtype = DType::bf16;
  work.bf16 = tile.bf16;
  for (int64_t panel = 0; panel < sight.panels(); panel += work.columns / kPanelColumns) {
    work.rows = keys_of(panel);
    work.columns = kPanelColumns;
    while (panel + work.columns / kPanelColumns < sight.panels() &&
           keys_of(panel + work.columns / kPanelColumns) == work.rows)
      work.columns += kPanelColumns;
    if (work.rows == 0) continue;
    work.b = panels + panel * kPanelColumns * pairs_of(tile.dim);
    work.c = products + panel * kPanelColumns;
    run_matmul_tile(work, memory);
  }
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
