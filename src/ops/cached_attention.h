// cached_attention(q, k_cache, v_cache, start) -> out: attention of new tokens on all that came before, for generation.
// q is [B,T,H,D], the caches are [B,Hkv,S,D] and hold the new tokens already, start is i32[B], with 0 <= start[b] and
// start[b] + T <= S: query t of sequence b is at position p = start[b] + t and sees positions max(0, p - window + 1) to
// p. out is [B,T,H,D].
#pragma once

#include "graph/builder.h"

namespace ingot {

struct CachedAttentionAttributes {
  double scale = 1.0;
  int64_t window = 0;  // 0: no limit
  double softcap = 0;  // scaled scores are softcap·tanh(score / softcap); 0: as they are
  static constexpr auto fields =
      std::tuple(field("scale", &CachedAttentionAttributes::scale), field("window", &CachedAttentionAttributes::window),
                 field("softcap", &CachedAttentionAttributes::softcap));
  bool operator==(const CachedAttentionAttributes&) const = default;
};

extern const OpDef kCachedAttention;
ValueId cached_attention(Builder& builder, ValueId q, ValueId k_cache, ValueId v_cache, ValueId start,
                         CachedAttentionAttributes attributes);

}  // namespace ingot
