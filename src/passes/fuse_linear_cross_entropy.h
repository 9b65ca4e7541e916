// The cross-entropy of logits that are a product with one matrix becomes linear_cross_entropy, so that the logits never
// exist as a whole. Not where something else reads the logits.
#pragma once

#include "passes/pass.h"

namespace ingot {

bool fuse_linear_cross_entropy(Graph& graph, PassContext& context);

}  // namespace ingot
