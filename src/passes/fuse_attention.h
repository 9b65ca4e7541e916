// softmax(mask_scores(scale · q·k^T))·v, with dropout on the weights and repeated key and value heads where there
// are any, becomes attention, so that no [B,H,T,T] tensor exists.
#pragma once

#include "passes/pass.h"

namespace ingot {

bool fuse_attention(Graph& graph, PassContext& context);

}  // namespace ingot
