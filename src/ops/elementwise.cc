#include "ops/elementwise.h"

#include "graph/storage.h"
#include "ops/reshape.h"
#include "ops/sum.h"

namespace ingot {

Result<Shape> broadcast_shapes(const Shape& a, const Shape& b) {
  const int rank = std::max(a.rank(), b.rank());
  std::vector<int64_t> dims(static_cast<size_t>(rank));
  for (int i = 1; i <= rank; ++i) {
    const int64_t x = i <= a.rank() ? a[-i] : 1, y = i <= b.rank() ? b[-i] : 1;
    if (x != y && x != 1 && y != 1)
      return failed_error("shapes {} and {} do not broadcast together", a.to_string(), b.to_string());
    dims[static_cast<size_t>(rank - i)] = x == 1 ? y : x;
  }
  return Shape(dims);
}

BroadcastIndex::BroadcastIndex(const Shape& in, const Shape& out) : out_(out), strides_(out) {
  int64_t stride = 1;
  for (int i = 1; i <= out.rank(); ++i) {
    const int64_t extent = i <= in.rank() ? in[-i] : 1;
    strides_[-i] = extent == 1 ? 0 : stride;
    stride *= extent;
  }
}

int64_t BroadcastIndex::operator()(int64_t out_index) const {
  int64_t at = 0;
  for (int i = 1; i <= out_.rank(); ++i) {
    at += (out_index % out_[-i]) * strides_[-i];
    out_index /= out_[-i];
  }
  return at;
}

Result<std::vector<Type>> infer_elementwise(std::span<const Type> inputs, size_t count) {
  if (inputs.size() != count) return failed_error("{} inputs, expected {}", inputs.size(), count);
  Type out = computed(inputs[0]);
  for (const Type& type : inputs) {
    if (type.packed_bytes > 0) return failed_error("an input is packed, expected plain");
    if (computed(type).dtype != out.dtype)
      return failed_error("inputs of dtypes {} and {}", name_of(out.dtype), name_of(type.dtype));
    INGOT_ASSIGN(out.shape, broadcast_shapes(out.shape, type.shape));
  }
  return std::vector<Type>{out};
}

Result<std::vector<Type>> infer_unary(std::span<const Type> inputs, const Attributes&) {
  return infer_elementwise(inputs, 1);
}

Result<std::vector<Type>> infer_unary_grad(std::span<const Type> inputs, const Attributes&) {
  if (inputs.size() == 2 && !(inputs[0].shape == inputs[1].shape))
    return failed_error("x has shape {}, dy {}", inputs[0].shape.to_string(), inputs[1].shape.to_string());
  return infer_elementwise(inputs, 2);
}

std::vector<OpExample> unary_examples(double low, double high) {
  return {{{{DType::f32, {3, 5}}}, {}, {}, low, high}, {{{DType::f32, {2, 1, 7}}}, {}, {}, low, high}};
}

std::vector<OpExample> unary_grad_examples() {
  return {{{{DType::f32, {3, 5}}, {DType::f32, {3, 5}}}, {}, {}, -3, 3},
          {{{DType::f32, {2, 1, 7}}, {DType::f32, {2, 1, 7}}}, {}, {}, -3, 3}};
}

void evaluate_unary(const EvalContext& context, const std::function<double(double)>& function) {
  const auto& in = context.inputs[0]->data;
  for (size_t i = 0; i < in.size(); ++i) context.outputs[0].data[i] = function(in[i]);
}

void evaluate_binary(const EvalContext& context, const std::function<double(double, double)>& function) {
  RefTensor& out = context.outputs[0];
  const BroadcastIndex a(context.inputs[0]->shape, out.shape), b(context.inputs[1]->shape, out.shape);
  for (int64_t i = 0; i < out.shape.elements(); ++i)
    out.data[static_cast<size_t>(i)] = function(context.inputs[0]->data[static_cast<size_t>(a(i))],
                                                context.inputs[1]->data[static_cast<size_t>(b(i))]);
}

ValueId sum_to_shape(Builder& builder, ValueId gradient, const Shape& shape) {
  const Shape& from = builder.shape(gradient);
  if (from == shape) return gradient;
  std::vector<int64_t> axes;
  for (int axis = 0; axis < from.rank(); ++axis) {
    const int in_shape = axis - (from.rank() - shape.rank());
    if (in_shape < 0 || (shape[in_shape] == 1 && from[axis] != 1)) axes.push_back(axis);
  }
  return reshape(builder, axes.empty() ? gradient : sum(builder, gradient, axes), shape);
}

}  // namespace ingot
