// Attention over growing caches, and rotary positions, in plain ONNX.
#pragma once

#include "export/onnx_lowering.h"

namespace ingot {

// cache_write: the new tokens' keys or values behind the past ones.
Status lower_cache_write(OnnxLowering& to, const Node& node);

// cached_attention: a query sees the keys that attention_mask leaves, up to its own place in the cache and within the
// window. Places in the cache, not position_ids, are what the window counts. A query that sees nothing gives zeros.
Status lower_cached_attention(OnnxLowering& to, const Node& node);

// rope, whose sines and cosines are computed once for all layers that turn by the same angles.
Status lower_rope(OnnxLowering& to, const Node& node);

}  // namespace ingot
