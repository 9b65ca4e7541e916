#include "ops/mask_scores.h"

#include "graph/storage.h"

namespace ingot {
namespace {

Result<std::vector<Type>> infer(std::span<const Type> inputs, const Attributes& attributes) {
  if (inputs.size() != 2) return failed_error("{} inputs, expected 2", inputs.size());
  const Shape &scores = inputs[0].shape, &first = inputs[1].shape;
  if (scores.rank() != 4 || scores[2] != scores[3])
    return failed_error("scores of shape {}, expected [B,H,T,T]", scores.to_string());
  if (!(first == Shape{scores[0], scores[2]}) || inputs[1].dtype != DType::i32)
    return failed_error("first_visible is {}, expected i32[{},{}]", inputs[1].to_string(), scores[0], scores[2]);
  if (attributes.as<MaskScoresAttributes>().window < 0) return failed_error("a negative window");
  return std::vector<Type>{computed(inputs[0])};
}

void evaluate(const EvalContext& context) {
  const auto& [window, fill] = context.node.attributes.as<MaskScoresAttributes>();
  const RefTensor& scores = *context.inputs[0];
  const int64_t heads = scores.shape[1], tokens = scores.shape[2];
  for (int64_t row = 0; row < scores.shape[0] * heads * tokens; ++row) {
    const int64_t t = row % tokens, b = row / (heads * tokens);
    auto first = static_cast<int64_t>(context.inputs[1]->data[static_cast<size_t>(b * tokens + t)]);
    if (window > 0) first = std::max(first, t - window + 1);
    for (int64_t j = 0; j < tokens; ++j) {
      const auto at = static_cast<size_t>(row * tokens + j);
      context.outputs[0].data[at] = first <= j && j <= t ? scores.data[at] : fill;
    }
  }
}

std::vector<OpExample> examples() {
  const std::vector<Type> types{{DType::f32, {2, 3, 5, 5}}, {DType::i32, {2, 5}}};
  const std::vector<std::vector<double>> values{{}, {0, 0, 0, 0, 0, 0, 0, 2, 2, 4}};
  return {{types, MaskScoresAttributes{0, 0.0}, values}, {types, MaskScoresAttributes{2, -7.5}, values}};
}

}  // namespace

const OpDef kMaskScores{
    .name = "mask_scores",
    .traits = {.in_place = {0}},
    .infer = infer,
    .gradient =
        [](GradientContext& context) {
          const int64_t window = context.op_node().attributes.as<MaskScoresAttributes>().window;
          context.input_gradients[0] =
              mask_scores(context.builder, context.output_gradients[0], context.input(1), {window, 0.0});
        },
    .evaluate = evaluate,
    .parse_attributes = &parse_attributes<MaskScoresAttributes>,
    .examples = examples,
};

ValueId mask_scores(Builder& builder, ValueId scores, ValueId first_visible, MaskScoresAttributes attributes) {
  return builder.add(kMaskScores, {scores, first_visible}, attributes);
}

}  // namespace ingot
