// A small model of the same kind as another: for a first pass of what will be done with the large one.
#pragma once

#include "models/model.h"

namespace ingot {

// The model with so many layers of that width. Heads keep their kind (grouped by as many, shared by all, or one
// key/value head each), head_dim and intermediate_size follow the width, a window shrinks to kShrunkWindow tokens so
// that short rows reach it; all other keys stay. Errors (usage): more than the model has, or a width that its heads
// cannot divide, which names the next that they can.
Result<Model> shrunk(const Model& model, int64_t layers, int64_t hidden_size);

inline constexpr int64_t kShrunkWindow = 16;

// Initial values of its parameters, larger than a training's, and with noise on norms and biases: no part may hide
// behind small numbers, 0 or 1. Elements [0, shape.elements()) into `out`.
void initialize_shrunk(const Model& model, const ParameterSpec& parameter, uint64_t seed, float* out);

}  // namespace ingot
