// Attention in double precision as its definition has it, for the reference evaluation of the attention ops.
#pragma once

#include "ops/attention.h"

namespace ingot::attention_reference {

struct Problem {
  int64_t batch, tokens, heads, kv_heads, head_dim;
  AttentionAttributes attributes;
  const RandomState& random;
};

// q [B,T,H,D], k and v [B,T,Hkv,D], first_visible [B,T], out as q, lse [B,H,T,2].
struct Inputs {
  const RefTensor &q, &k, &v, &first_visible;
};
void forward(const Problem& problem, const Inputs& inputs, RefTensor& out, RefTensor& lse);

struct Saved {
  const RefTensor &out, &lse, &dout;
};
// Adds to dq, dk and dv.
void backward(const Problem& problem, const Inputs& inputs, const Saved& saved, RefTensor& dq, RefTensor& dk,
              RefTensor& dv);

}  // namespace ingot::attention_reference
