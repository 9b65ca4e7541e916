#include "nn/loss.h"

#include "nn/softcap.h"
#include "ops/cross_entropy.h"
#include "ops/matmul.h"
#include "ops/reshape.h"

namespace ingot {

ValueId head_logits(Builder& builder, ValueId x, ValueId weight, bool transposed, double cap) {
  const Shape shape = builder.shape(x);
  const ValueId rows = reshape(builder, x, {shape[0] * shape[1], shape[2]});
  return softcap(builder, matmul(builder, rows, weight, {false, transposed}), cap);
}

ValueId token_loss(Builder& builder, ValueId logits, ValueId targets, ValueId scale) {
  return cross_entropy(builder, logits, reshape(builder, targets, {builder.shape(targets).elements()}), scale);
}

}  // namespace ingot
