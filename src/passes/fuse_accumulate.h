// A gradient that is added to a sum is added where it is computed: a weight's product (matmul_add), also where the
// product is of several weights joined, and an embedding's rows.
#pragma once

#include "passes/pass.h"

namespace ingot {

bool fuse_accumulate(Graph& graph, PassContext& context);

}  // namespace ingot
