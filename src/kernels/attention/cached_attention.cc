#include "kernels/attention/cached_attention.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "kernels/attention/attention_tiles.h"
#include "kernels/attention/decode_tiles.h"

namespace ingot::kernels {
namespace {

// Up to so many new tokens are bound by reading the cache and go row by row; more of them go by tiles as in training.
constexpr int64_t kFewTokens = 4;
constexpr int64_t kMaxRows = 64;  // queries of a tile: group x new tokens

int64_t group_of(const CachedAttentionShape& s) {
  return s.heads / s.kv_heads;
}
bool row_by_row(const CachedAttentionShape& s) {
  return s.tokens <= kFewTokens && group_of(s) * s.tokens <= kMaxRows;
}

Status check(const CachedAttentionShape& s) {
  if (s.batch < 0 || s.tokens < 0 || s.heads < 1 || s.kv_heads < 1 || s.head_dim < 1 || s.capacity < s.tokens)
    return usage_error(
        "attention on a cache of {} tokens over batch {}, {} new tokens, {} heads, {} key/value heads of {}",
        s.capacity, s.batch, s.tokens, s.heads, s.kv_heads, s.head_dim);
  if (s.heads % s.kv_heads != 0)
    return usage_error("{} attention heads are not a multiple of {} key/value heads", s.heads, s.kv_heads);
  if (!(s.softcap >= 0)) return usage_error("an attention softcap of {}", s.softcap);
  if (s.window < 0) return usage_error("an attention window of {} tokens", s.window);
  if (s.q_row_stride < s.heads * s.head_dim || s.out_row_stride < s.heads * s.head_dim)
    return usage_error("row strides {} and {} of attention's q and out are less than the rows' width", s.q_row_stride,
                       s.out_row_stride);
  return {};
}

}  // namespace

Result<std::unique_ptr<CachedAttention>> CachedAttention::create(const CachedAttentionShape& shape, int threads) {
  INGOT_CHECK(threads >= 1, "attention for {} threads", threads);
  CachedAttentionShape full = shape;
  if (full.q_row_stride == 0) full.q_row_stride = full.heads * full.head_dim;
  if (full.out_row_stride == 0) full.out_row_stride = full.heads * full.head_dim;
  INGOT_TRY(check(full));
  return std::unique_ptr<CachedAttention>(new CachedAttention(full));
}

int64_t CachedAttention::tiles() const {
  if (row_by_row(shape_)) return shape_.tokens == 0 ? 0 : shape_.batch * shape_.kv_heads;
  return shape_.batch * shape_.heads * query_tiles_of(shape_.tokens);
}

size_t CachedAttention::scratch_bytes() const {
  return row_by_row(shape_) ? decode_scratch_bytes(group_of(shape_) * shape_.tokens, shape_.head_dim)
                            : attention_forward_scratch_bytes(shape_.head_dim, DType::f32, Bf16Product::widened);
}

void CachedAttention::run(int64_t index, const float* q, const float* k_cache, const float* v_cache,
                          const int32_t* start, float* out, int, std::byte* scratch) const {
  INGOT_CHECK(index >= 0 && index < tiles(), "tile {} of {}", index, tiles());
  const CachedAttentionShape& s = shape_;
  auto* floats = reinterpret_cast<float*>(scratch);
  if (!row_by_row(s)) return run_tile(index, q, k_cache, v_cache, start, out, floats);
  const int64_t batch = index / s.kv_heads, group = group_of(s), position = start[batch];
  INGOT_CHECK(position >= 0 && position + s.tokens <= s.capacity, "tokens {} to {} of a cache of {}", position,
              position + s.tokens, s.capacity);
  std::array<DecodeRow, kMaxRows> rows;
  int64_t count = 0;
  for (int64_t head = index % s.kv_heads * group; head < (index % s.kv_heads + 1) * group; ++head) {
    for (int64_t t = 0; t < s.tokens; ++t) {
      const int64_t last = position + t, token = batch * s.tokens + t;
      rows[static_cast<size_t>(count++)] = {q + token * s.q_row_stride + head * s.head_dim,
                                            out + token * s.out_row_stride + head * s.head_dim,
                                            s.window > 0 ? std::max<int64_t>(0, last - s.window + 1) : 0, last};
    }
  }
  const int64_t cache = index * s.capacity * s.head_dim;
  run_decode({rows.data(), count, s.head_dim, s.scale, s.softcap, k_cache + cache, v_cache + cache}, floats);
}

void CachedAttention::run_tile(int64_t index, const float* q, const float* k_cache, const float* v_cache,
                               const int32_t* start, float* out, float* scratch) const {
  const CachedAttentionShape& s = shape_;
  const int64_t per_head = query_tiles_of(s.tokens), batch = index / per_head / s.heads,
                head = index / per_head % s.heads;
  const int64_t begin = (per_head - 1 - index % per_head) * kQueryTile, end = std::min(s.tokens, begin + kQueryTile);
  const int64_t position = start[batch], token = batch * s.tokens + begin;
  INGOT_CHECK(position >= 0 && position + s.tokens <= s.capacity, "tokens {} to {} of a cache of {}", position,
              position + s.tokens, s.capacity);
  const int64_t cache = (batch * s.kv_heads + head / group_of(s)) * s.capacity * s.head_dim;
  AttentionTile tile;
  tile.sight = sight_of(position + begin, position + end, s.window, nullptr);
  tile.dim = s.head_dim;
  tile.scale = s.scale;
  tile.softcap = s.softcap;
  tile.q = StoredRows{q, s.q_row_stride}.from(token, head * s.head_dim);
  tile.k = {k_cache + cache, s.head_dim};
  tile.v = {v_cache + cache, s.head_dim};
  tile.out = OutputRows{out, s.out_row_stride}.from(token, head * s.head_dim);
  run_attention_forward(tile, scratch);
}

}  // namespace ingot::kernels
