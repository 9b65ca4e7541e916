#include "nn/mlp.h"

#include "ops/mul.h"

namespace ingot {

ValueId mlp(Builder& builder, ValueId x, const LinearWeights& up, const LinearWeights& down, Activation activation) {
  return linear(builder, activate(builder, activation, linear(builder, x, up)), down);
}

ValueId gated_mlp(Builder& builder, ValueId x, const LinearWeights& gate, const LinearWeights& up,
                  const LinearWeights& down, Activation activation) {
  const ValueId gated = activate(builder, activation, linear(builder, x, gate));
  return linear(builder, mul(builder, gated, linear(builder, x, up)), down);
}

}  // namespace ingot
