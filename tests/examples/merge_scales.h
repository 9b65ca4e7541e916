// merge_scales: scale(scale(x, a), b) becomes scale(x, a·b).
#pragma once

#include "passes/pass.h"

namespace ingot {

bool merge_scales(Graph& graph, PassContext& context);

}  // namespace ingot
