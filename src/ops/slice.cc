#include "ops/slice.h"

#include "ops/axes.h"
#include "ops/concat.h"
#include "ops/constant.h"

namespace ingot {
namespace {

Result<std::vector<Type>> infer(std::span<const Type> inputs, const Attributes& attributes) {
  const auto& [axis, start, stop] = attributes.as<SliceAttributes>();
  if (inputs.size() != 1) return failed_error("{} inputs, expected 1", inputs.size());
  Shape shape = inputs[0].shape;
  INGOT_TRY(check_axis(shape, axis));
  int64_t& extent = shape[static_cast<int>(axis)];
  if (start < 0 || start > stop || stop > extent)
    return failed_error("[{}, {}) of axis {} of {}", start, stop, axis, inputs[0].shape.to_string());
  extent = stop - start;
  return std::vector<Type>{{inputs[0].dtype, shape}};
}

// dy between zeros.
void gradient(GradientContext& context) {
  Builder& builder = context.builder;
  const SliceAttributes slice = context.op_node().attributes.as<SliceAttributes>();  // a copy: adding nodes moves them
  const int axis = static_cast<int>(slice.axis);
  const Type in = builder.type(context.input(0));
  const int64_t extent = in.shape[axis];
  std::vector<ValueId> pieces;
  const auto zeros = [&](int64_t size) {
    Shape shape = in.shape;
    shape[axis] = size;
    if (size > 0) pieces.push_back(constant(builder, 0.0, shape, in.dtype));
  };
  zeros(slice.start);
  pieces.push_back(context.output_gradients[0]);
  zeros(extent - slice.stop);
  context.input_gradients[0] = concat(builder, pieces, axis);
}

void evaluate(const EvalContext& context) {
  const auto& [axis, start, stop] = context.node.attributes.as<SliceAttributes>();
  const AxisView in = axis_view(context.inputs[0]->shape, axis);
  auto to = context.outputs[0].data.begin();
  for (int64_t i = 0; i < in.outer; ++i) {
    const auto from = context.inputs[0]->data.begin() + (i * in.extent + start) * in.inner;
    to = std::copy(from, from + (stop - start) * in.inner, to);
  }
}

}  // namespace

const OpDef kSlice{
    .name = "slice",
    .traits = {.part =
                   [](const Attributes& attributes, int32_t) {
                     const auto& slice = attributes.as<SliceAttributes>();
                     return PartOf{slice.axis, slice.start};
                   }},
    .infer = infer,
    .gradient = gradient,
    .evaluate = evaluate,
    .parse_attributes = &parse_attributes<SliceAttributes>,
    .examples =
        [] {
          return std::vector<OpExample>{{{{DType::f32, {3, 5}}}, SliceAttributes{1, 1, 4}},
                                        {{{DType::f32, {3, 5}}}, SliceAttributes{0, 0, 2}},
                                        {{{DType::f32, {2, 3, 5}}}, SliceAttributes{1, 2, 3}}};
        },
};

ValueId slice(Builder& builder, ValueId x, int axis, int64_t start, int64_t stop) {
  const Shape& shape = builder.shape(x);
  const int at = shape.normalize(axis);
  if (start == 0 && stop == shape[at]) return x;
  return builder.add(kSlice, {x}, SliceAttributes{at, start, stop});
}

}  // namespace ingot
