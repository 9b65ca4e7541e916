// Elementwise ops that feed each other become one cluster, where no way through a node outside leads back into it.
#pragma once

#include "passes/pass.h"

namespace ingot {

bool fuse_elementwise(Graph& graph, PassContext& context);

}  // namespace ingot
