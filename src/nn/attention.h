// Attention of queries on keys and values, for training (all tokens of a row at once) and for generation (new tokens
// against a cache). Multi-head, grouped-query and multi-query by the number of key/value heads.
#pragma once

#include <string>

#include "graph/builder.h"

namespace ingot {

// What a graph's attention layers have in common: first_visible, i32 [B,T], in training; start, i32 [B], and the
// capacity of the caches in generation.
struct AttentionContext {
  ValueId first_visible = kNone;
  ValueId start = kNone;
  int64_t cache_capacity = 0;
};

struct AttentionSettings {
  double scale = 1;    // of the scores
  double softcap = 0;  // of the scaled scores (nn/softcap.h); 0: none
  int64_t window = 0;  // a token sees at most so many, itself included; 0: no limit
  double dropout = 0;  // of the weights, in training
  int64_t layer = 0;   // names the caches: "cache.k.LAYER", "cache.v.LAYER"
};

// [..., H·D] -> [..., H, D] and back.
ValueId split_heads(Builder& builder, ValueId x, int64_t heads);
ValueId merge_heads(Builder& builder, ValueId x);

// q [B,T,H,D], k and v [B,T,Hkv,D] -> [B,T,H,D].
ValueId attend(Builder& builder, ValueId q, ValueId k, ValueId v, const AttentionContext& context,
               const AttentionSettings& settings);

}  // namespace ingot
