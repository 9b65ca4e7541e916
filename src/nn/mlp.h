// The feed-forward part of a block.
#pragma once

#include "nn/activation.h"
#include "nn/linear.h"

namespace ingot {

// down(activation(up(x))): x [..., C] -> [..., C].
ValueId mlp(Builder& builder, ValueId x, const LinearWeights& up, const LinearWeights& down, Activation activation);

// down(activation(gate(x)) · up(x)) (Shazeer, arXiv:2002.05202).
ValueId gated_mlp(Builder& builder, ValueId x, const LinearWeights& gate, const LinearWeights& up,
                  const LinearWeights& down, Activation activation);

}  // namespace ingot
