// attention_packed_grad(qkv, first_visible, out, lse, dout) -> dqkv: the gradient of attention_packed, whose attributes
// it shares; dqkv lies as qkv does.
#pragma once

#include "ops/attention_packed.h"

namespace ingot {

extern const OpDef kAttentionPackedGrad;

}  // namespace ingot
