// `ingot verify --layer N`: one block alone. It starts from the reference's own hidden state, so that what comes before
// cannot disturb it, and only its parameters are loaded. Internal to train/.
#pragma once

#include "train/verify.h"

namespace ingot {

// Compares what block options.layer (which there is) hands on, the gradients of its parameters and, where the file has
// it, the gradient by what it takes in. The gradient that reaches the block is the reference's
// grad.hidden_states.(N+1); a file without it gets that of our blocks behind it, which start from the reference's
// state. Error (input): the file has no hidden_states.N, or nothing of the block to compare.
Result<Verification> verify_layer(const Model& model, const fs::path& weights, const Reference& reference,
                                  const VerifyOptions& options, const ThreadPool& pool);

}  // namespace ingot
