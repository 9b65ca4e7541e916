#include "ops/rope.h"

#include <cmath>

#include "graph/storage.h"

namespace ingot {
namespace {

Result<std::vector<Type>> infer(std::span<const Type> inputs, const Attributes& attributes) {
  const auto& [inv_freq, rotated_heads, inverse] = attributes.as<RopeAttributes>();
  if (inputs.size() != 2) return failed_error("{} inputs, expected 2", inputs.size());
  const Shape& x = inputs[0].shape;
  if (x.rank() != 4 || x[3] != 2 * static_cast<int64_t>(inv_freq.size()))
    return failed_error("x of shape {}, expected [B,T,H,{}]", x.to_string(), 2 * inv_freq.size());
  if (!(inputs[1].shape == Shape{x[0], x[1]}) || inputs[1].dtype != DType::i32)
    return failed_error("positions are {}, expected i32[{},{}]", inputs[1].to_string(), x[0], x[1]);
  if (rotated_heads < -1 || rotated_heads > x[2]) return failed_error("{} rotated heads of {}", rotated_heads, x[2]);
  return std::vector<Type>{computed(inputs[0])};
}

void evaluate(const EvalContext& context) {
  const auto& [inv_freq, rotated_heads, inverse] = context.node.attributes.as<RopeAttributes>();
  const Shape& shape = context.inputs[0]->shape;
  const size_t half = inv_freq.size();
  const auto heads = static_cast<size_t>(shape[2]);
  const size_t rotated = rotated_heads < 0 ? heads : static_cast<size_t>(rotated_heads);
  context.outputs[0].data = context.inputs[0]->data;
  double* y = context.outputs[0].data.data();
  for (double position : context.inputs[1]->data)
    for (size_t h = 0; h < heads; ++h, y += 2 * half)
      for (size_t i = 0; i < half && h < rotated; ++i) {
        const double angle = (inverse ? -position : position) * inv_freq[i];
        const double cos = std::cos(angle), sin = std::sin(angle), a = y[i], b = y[i + half];
        y[i] = a * cos - b * sin;
        y[i + half] = b * cos + a * sin;
      }
}

std::vector<OpExample> examples() {
  const std::vector<Type> types{{DType::f32, {2, 3, 3, 6}}, {DType::i32, {2, 3}}};
  const std::vector<std::vector<double>> values{{}, {0, 1, 2, 0, 17, 1000}};
  const std::vector<double> inv_freq{1.0, 0.1, 0.01};
  return {{types, RopeAttributes{inv_freq, -1, false}, values},
          {types, RopeAttributes{inv_freq, 2, false}, values},
          {types, RopeAttributes{inv_freq, -1, true}, values}};
}

}  // namespace

const OpDef kRope{
    .name = "rope",
    .traits = {.in_place = {0}},
    .infer = infer,
    .gradient =
        [](GradientContext& context) {
          RopeAttributes attributes = context.op_node().attributes.as<RopeAttributes>();
          attributes.inverse = !attributes.inverse;
          context.input_gradients[0] =
              rope(context.builder, context.output_gradients[0], context.input(1), std::move(attributes));
        },
    .evaluate = evaluate,
    .parse_attributes = &parse_attributes<RopeAttributes>,
    .examples = examples,
};

ValueId rope(Builder& builder, ValueId x, ValueId positions, RopeAttributes attributes) {
  return builder.add(kRope, {x, positions}, std::move(attributes));
}

}  // namespace ingot
