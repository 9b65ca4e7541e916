// attention_grad(q, k, v, first_visible, out, lse, dout) -> dq, dk, dv: the gradient of attention, whose attributes it
// shares. The weights are computed again from lse.
#pragma once

#include "ops/attention.h"

namespace ingot {

extern const OpDef kAttentionGrad;

}  // namespace ingot
