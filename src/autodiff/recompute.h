// Recomputation: what the backward pass reads of a layer's forward pass is computed again from what is kept, right
// before its first reader, in place of being kept for as long. (Chen et al., "Training Deep Nets with Sublinear Memory
// Cost", 2016; selective: Korthikanti et al., "Reducing Activation Recomputation in Large Transformer Models", 2022.)
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "graph/graph.h"

namespace ingot {

enum class RecomputeLevel : uint8_t {
  none,
  selective,  // what has no product of matrices in it (norms, activations, casts) and needs only what is kept anyway
  full,       // everything within the layer: only what comes into it is kept
};

// The layer that a path belongs to: its first component that is a number ("model.layers.3.mlp": 3). kNone: none.
int64_t layer_of(std::string_view path);

// levels: by layer_of a node's path; what lies beyond their end or belongs to no layer is left as it is. The forward
// pass is what runs before the node that computes `loss`. The nodes that are added compute the same bits as those that
// they repeat, random numbers included. Returns how many were added.
int64_t recompute(Graph& graph, ValueId loss, std::span<const RecomputeLevel> levels);

}  // namespace ingot
