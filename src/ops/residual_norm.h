// What residual_layer_norm and residual_rms_norm share: sum = x + dropout(delta), then the norm of the sum. The norm is
// the plain op, its rule and its reference.
#pragma once

#include "graph/op.h"

namespace ingot {

struct ResidualNorm {
  const OpDef& norm;      // layer_norm or rms_norm: its inputs are the sum, then inputs 2… of the residual op
  Attributes attributes;  // of the norm
  double dropout = 0.0;
  std::string stream;
};

// The sum's type, then the norm's outputs.
Result<std::vector<Type>> infer_residual_norm(const ResidualNorm& op, std::span<const Type> inputs);
void evaluate_residual_norm(const ResidualNorm& op, const EvalContext& context);

}  // namespace ingot
