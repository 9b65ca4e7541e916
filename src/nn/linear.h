// Linear layers.
#pragma once

#include "nn/weights.h"

namespace ingot {

// How a checkpoint holds a weight: [in, out] (GPT-2's Conv1D) or [out, in] (torch's Linear).
enum class WeightLayout { in_out, out_in };

struct LinearWeights {
  ValueId weight = kNone, bias = kNone;  // bias [out] or kNone
  WeightLayout layout = WeightLayout::out_in;
};
// `name`.weight and, where it is there, `name`.bias.
LinearWeights linear_weights(const Weights& weights, const std::string& name, WeightLayout layout);

// x [..., in] -> [..., out].
ValueId linear(Builder& builder, ValueId x, const LinearWeights& weights);

}  // namespace ingot
