#include "nn/linear.h"

#include "ops/add.h"
#include "ops/matmul.h"

namespace ingot {

LinearWeights linear_weights(const Weights& weights, const std::string& name, WeightLayout layout) {
  return {weights(name + ".weight"), weights.optional(name + ".bias"), layout};
}

ValueId linear(Builder& builder, ValueId x, const LinearWeights& weights) {
  const ValueId product = matmul(builder, x, weights.weight, {false, weights.layout == WeightLayout::out_in});
  return weights.bias == kNone ? product : add(builder, product, weights.bias);
}

}  // namespace ingot
