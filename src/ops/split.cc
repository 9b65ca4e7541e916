#include "ops/split.h"

#include <numeric>

#include "ops/axes.h"
#include "ops/concat.h"
#include "ops/constant.h"

namespace ingot {
namespace {

Result<std::vector<Type>> infer(std::span<const Type> inputs, const Attributes& attributes) {
  const auto& [axis, sizes] = attributes.as<SplitAttributes>();
  if (inputs.size() != 1) return failed_error("{} inputs, expected 1", inputs.size());
  Type piece = inputs[0];
  INGOT_TRY(check_axis(piece.shape, axis));
  std::vector<Type> out;
  int64_t sum = 0;
  for (int64_t size : sizes) {
    if (size < 0) return failed_error("a piece of size {}", size);
    sum += size;
    piece.shape[static_cast<int>(axis)] = size;
    out.push_back(piece);
  }
  if (out.empty() || sum != inputs[0].shape[static_cast<int>(axis)])
    return failed_error("pieces of {} altogether, axis {} of {} is to be split", sum, axis,
                        inputs[0].shape.to_string());
  return out;
}

void gradient(GradientContext& context) {
  Builder& builder = context.builder;
  const int axis = static_cast<int>(context.op_node().attributes.as<SplitAttributes>().axis);
  std::vector<ValueId> pieces(context.output_gradients.begin(), context.output_gradients.end());
  for (size_t i = 0; i < pieces.size(); ++i) {
    const Type type = builder.type(context.output(i));
    if (pieces[i] == kNone) pieces[i] = constant(builder, 0.0, type.shape, type.dtype);
  }
  context.input_gradients[0] = concat(builder, pieces, axis);
}

void evaluate(const EvalContext& context) {
  const auto& [axis, sizes] = context.node.attributes.as<SplitAttributes>();
  const AxisView in = axis_view(context.inputs[0]->shape, axis);
  int64_t start = 0;
  for (size_t k = 0; k < sizes.size(); ++k) {
    for (int64_t i = 0; i < in.outer; ++i)
      std::copy_n(context.inputs[0]->data.begin() + (i * in.extent + start) * in.inner, sizes[k] * in.inner,
                  context.outputs[k].data.begin() + i * sizes[k] * in.inner);
    start += sizes[k];
  }
}

}  // namespace

const OpDef kSplit{
    .name = "split",
    .traits = {.part =
                   [](const Attributes& attributes, int32_t output) {
                     const auto& [axis, sizes] = attributes.as<SplitAttributes>();
                     return PartOf{axis, std::accumulate(sizes.begin(), sizes.begin() + output, int64_t{0})};
                   }},
    .infer = infer,
    .gradient = gradient,
    .evaluate = evaluate,
    .parse_attributes = &parse_attributes<SplitAttributes>,
    .examples =
        [] {
          return std::vector<OpExample>{{{{DType::f32, {3, 7}}}, SplitAttributes{1, {3, 3, 1}}},
                                        {{{DType::f32, {5, 2}}}, SplitAttributes{0, {1, 4}}},
                                        {{{DType::f32, {2, 6, 5}}}, SplitAttributes{1, {2, 2, 2}}}};
        },
};

std::vector<ValueId> split(Builder& builder, ValueId x, int axis, std::vector<int64_t> sizes) {
  const int at = builder.shape(x).normalize(axis);
  return builder.add_many(kSplit, {x}, SplitAttributes{at, std::move(sizes)});
}

}  // namespace ingot
