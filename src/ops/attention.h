// attention(q, k, v, first_visible) -> out, lse: causal attention as one op, softmax(scale · q·k^T + mask)·v for every
// batch row and head, without the [B,H,T,T] scores (Dao et al., "FlashAttention", 2022). With a softcap the scores
// before the mask are softcap·tanh(scale · q·k^T / softcap).
//
// q is [B,T,H,D], k and v are [B,T,Hkv,D] with H a multiple of Hkv: head h reads key and value head h / (H / Hkv).
// first_visible is i32[B,T]: query t sees key j iff max(first_visible[t], t - window + 1) <= j <= t. A query that sees
// nothing gives zeros and lse = -inf, 0. out is [B,T,H,D]; lse, f32[B,H,T,2], is the log2 of the sum of exponentials
// that softmax divides by, as two numbers whose sum it is: the largest score (in units of log2) and what the sum adds
// to it. It is there for the backward pass, which is then exact for scores of any size; no gradient flows through it.
#pragma once

#include "graph/builder.h"

namespace ingot {

struct AttentionAttributes {
  double scale = 1.0;  // of the scores, usually 1 / sqrt(D)
  int64_t window = 0;  // a query sees at most so many keys, itself included; 0: no limit
  // Probability with which a weight is dropped after softmax. The number for a weight is that of a plain `dropout` with
  // this stream on the [B,H,T,T] tensor.
  double dropout = 0.0;
  std::string stream;
  double softcap = 0.0;  // 0: none
  static constexpr auto fields =
      std::tuple(field("scale", &AttentionAttributes::scale), field("window", &AttentionAttributes::window),
                 field("dropout", &AttentionAttributes::dropout), field("stream", &AttentionAttributes::stream),
                 field("softcap", &AttentionAttributes::softcap));
  bool operator==(const AttentionAttributes&) const = default;
};

extern const OpDef kAttention;

}  // namespace ingot
