// Normalization of rows.
#pragma once

#include "nn/weights.h"

namespace ingot {

enum class NormKind { layer_norm, rms_norm };

// Over the last axis of x, with `name`.weight and, for a layer norm, `name`.bias where they are there. `adds_one`: the
// factor is 1 + weight.
ValueId norm(Builder& builder, ValueId x, const Weights& weights, const std::string& name, NormKind kind, double eps,
             bool adds_one = false);

}  // namespace ingot
