// x + dropout(delta) followed by a norm becomes residual_layer_norm or residual_rms_norm, and the sum of a norm's
// gradient and the residual's is made by the norm's gradient op.
#pragma once

#include "passes/pass.h"

namespace ingot {

bool fuse_residual_norm(Graph& graph, PassContext& context);

}  // namespace ingot
