// What elementwise ops share: the rule of broadcasting (NumPy's), reference evaluation from a scalar function, and the
// reduction of a gradient to a broadcast input's shape.
#pragma once

#include <functional>

#include "graph/builder.h"

namespace ingot {

// Extents are aligned from the last axis; each is equal or 1 in one of the two.
Result<Shape> broadcast_shapes(const Shape& a, const Shape& b);

// For a linear index of `out`, the linear index of the element of a tensor of shape `in` that is broadcast there.
class BroadcastIndex {
 public:
  BroadcastIndex(const Shape& in, const Shape& out);
  int64_t operator()(int64_t out_index) const;

 private:
  Shape out_;
  Shape strides_;  // of `in`, aligned to out's axes; 0 where broadcast
};

// All inputs broadcast together; the output has the first input's dtype. `count` is the number of inputs expected.
Result<std::vector<Type>> infer_elementwise(std::span<const Type> inputs, size_t count);

// The rules of ops that are `function` of one input, and of gradient ops (x, dy) of one shape.
Result<std::vector<Type>> infer_unary(std::span<const Type> inputs, const Attributes& attributes);
Result<std::vector<Type>> infer_unary_grad(std::span<const Type> inputs, const Attributes& attributes);

// Examples for an op of one input with values in [low, high], and for its gradient op.
std::vector<OpExample> unary_examples(double low = -2, double high = 2);
std::vector<OpExample> unary_grad_examples();

// out[i] = function(inputs broadcast to i). One input:
void evaluate_unary(const EvalContext& context, const std::function<double(double)>& function);
void evaluate_binary(const EvalContext& context, const std::function<double(double, double)>& function);

// `gradient` summed down to `shape`, from which it had been broadcast.
ValueId sum_to_shape(Builder& builder, ValueId gradient, const Shape& shape);

}  // namespace ingot
