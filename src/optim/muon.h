// The products of Muon (Jordan et al., "Muon: An optimizer for hidden layers in neural networks", 2024).
#pragma once

#include "graph/builder.h"

namespace ingot {

// A matrix with the singular vectors of x [rows, columns] and singular values near 1 (0.7 to 1.2 for those that were
// not far below the largest): x divided by its Frobenius norm, then five Newton-Schulz steps
//   S = x·xᵀ;  x = 3.4445·x + (-4.7750·S + 2.0315·S·S)·x
// on the shorter side (of a tall matrix S = xᵀ·x multiplies from the right). Zero stays zero.
ValueId orthogonalize(Builder& builder, ValueId x);

// By what the orthogonal direction is multiplied, so that its entries are as large as those of AdamW's steps usually
// are and one learning rate serves both: 0.2 · sqrt(max(rows, columns)) (Liu et al., "Muon is Scalable for LLM
// Training", 2025).
double muon_scale(const Shape& shape);

}  // namespace ingot
