// attention_packed(qkv, first_visible) -> out, lse: attention on queries, keys and values that lie side by side, as one
// product with the three weights gives them. qkv is [B,T,(H + 2·Hkv)·D]: all query heads, all key heads, all value
// heads. out is [B,T,H·D], ready for the output projection; lse is f32[B,H,T,2] as in attention.
#pragma once

#include "graph/builder.h"

namespace ingot {

struct AttentionPackedAttributes {
  int64_t heads = 1, kv_heads = 1, head_dim = 0;
  double scale = 1.0;
  int64_t window = 0;
  double dropout = 0.0;
  std::string stream;
  double softcap = 0.0;
  static constexpr auto fields = std::tuple(
      field("heads", &AttentionPackedAttributes::heads), field("kv_heads", &AttentionPackedAttributes::kv_heads),
      field("head_dim", &AttentionPackedAttributes::head_dim), field("scale", &AttentionPackedAttributes::scale),
      field("window", &AttentionPackedAttributes::window), field("dropout", &AttentionPackedAttributes::dropout),
      field("stream", &AttentionPackedAttributes::stream), field("softcap", &AttentionPackedAttributes::softcap));
  bool operator==(const AttentionPackedAttributes&) const = default;
};

extern const OpDef kAttentionPacked;

}  // namespace ingot
