// Elementwise ops behind a product with one matrix (bias, activation, activation's gradient, residual) run on its tiles
// while they are in cache: linear. What something else reads of the values between is written too, no more.
#pragma once

#include "passes/pass.h"

namespace ingot {

bool fuse_epilogue(Graph& graph, PassContext& context);

}  // namespace ingot
