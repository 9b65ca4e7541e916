// attention on queries, keys and values that are the parts of one value, with rotary embedding of queries and keys
// between, becomes attention_packed on the whole, so that nothing is split or joined, forward or backward.
#pragma once

#include "passes/pass.h"

namespace ingot {

bool pack_attention(Graph& graph, PassContext& context);

}  // namespace ingot
