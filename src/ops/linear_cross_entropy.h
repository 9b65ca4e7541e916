// linear_cross_entropy(x, w, targets, scale) -> loss: scale · the sum over rows of the cross-entropy of softmax(x·w)
// against the target, chunk by chunk, so that the logits [R,V] never exist as a whole. x is [R,C], w is [C,V] ([V,C]
// with transpose_b), targets is i32[R] (negative: the row does not count), scale is f32[] (one over the count of
// targets). With a softcap the logits are softcap·tanh(x·w / softcap).
#pragma once

#include "graph/builder.h"

namespace ingot {

struct LinearCrossEntropyAttributes {
  bool transpose_b = false;
  double softcap = 0.0;  // 0: none
  static constexpr auto fields = std::tuple(field("transpose_b", &LinearCrossEntropyAttributes::transpose_b),
                                            field("softcap", &LinearCrossEntropyAttributes::softcap));
  bool operator==(const LinearCrossEntropyAttributes&) const = default;
};

extern const OpDef kLinearCrossEntropy;

// For the reference evaluation of this op and its gradient: the capped logits.
RefTensor capped_logits(RefTensor products, double softcap);

}  // namespace ingot
