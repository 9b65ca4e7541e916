// A result that is read only through a cast to 16 bits is stored so by the node that computes it (graph/storage.h).
// Elementwise ops are left to clusters, where the cast is one instruction more.
#pragma once

#include "passes/pass.h"

namespace ingot {

bool fuse_cast(Graph& graph, PassContext& context);

}  // namespace ingot
