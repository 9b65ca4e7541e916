// Attention of new tokens on a cache of keys and values that holds them already (generation; forward only).
// Query t of sequence b is at position p = start[b] + t and sees positions max(0, p - window + 1) to p. Caches are
// [batch,kv_heads,capacity,head_dim], so that one head's keys, read from end to end for each token, are contiguous. A
// query that sees nothing yields zeros. Grouped queries as in attention.h. The same bits for any number of threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/result.h"

namespace ingot::kernels {

struct CachedAttentionShape {
  int64_t batch = 1, tokens = 1, heads = 1, kv_heads = 1, head_dim = 0, capacity = 0;
  int64_t q_row_stride = 0,
          out_row_stride = 0;  // floats between tokens of q and out [batch,tokens,heads,head_dim]; 0: dense
  float scale = 1.0f;
  int64_t window = 0;    // 0: no limit
  float softcap = 0.0f;  // scaled scores are softcap·tanh(score / softcap); 0: as they are

  bool operator==(const CachedAttentionShape&) const = default;
};

// Immutable after create; any number of threads may call run at once, each with its own scratch.
class CachedAttention {
 public:
  static Result<std::unique_ptr<CachedAttention>> create(const CachedAttentionShape& shape, int threads);

  const CachedAttentionShape& shape() const { return shape_; }
  int64_t tiles() const;
  size_t scratch_bytes() const;  // per thread; 64-byte aligned
  // start is [batch]; start[b] + tokens <= capacity.
  void run(int64_t tile, const float* q, const float* k_cache, const float* v_cache, const int32_t* start, float* out,
           int thread, std::byte* scratch) const;

 private:
  explicit CachedAttention(const CachedAttentionShape& shape) : shape_(shape) {}
  void run_tile(int64_t tile, const float* q, const float* k_cache, const float* v_cache, const int32_t* start,
                float* out, float* scratch) const;

  CachedAttentionShape shape_;
};

}  // namespace ingot::kernels
