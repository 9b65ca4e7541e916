// Where linear_cross_entropy stands beside its gradient the loss comes from the gradient op, which computes it anyway.
#pragma once

#include "passes/pass.h"

namespace ingot {

bool merge_loss(Graph& graph, PassContext& context);

}  // namespace ingot
