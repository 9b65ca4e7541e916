#include "ops/dropout.h"

#include "base/rng.h"
#include "ops/elementwise.h"

namespace ingot {
namespace {

Result<std::vector<Type>> infer(std::span<const Type> inputs, const Attributes& attributes) {
  const double p = attributes.as<DropoutAttributes>().p;
  if (!(p >= 0 && p < 1)) return failed_error("a probability of {}, expected 0 <= p < 1", p);
  return infer_elementwise(inputs, 1);
}

void evaluate(const EvalContext& context) {
  const auto& attributes = context.node.attributes.as<DropoutAttributes>();
  const auto& in = context.inputs[0]->data;
  const RandomState& random = context.random;
  const uint64_t key = stream_key(random.seed, attributes.stream);
  const uint64_t first =
      static_cast<uint64_t>(random.first_sequence * (context.inputs[0]->shape.elements() / random.batch));
  // The comparison is in f32, as in kernels, so that both drop the same elements.
  const float p = static_cast<float>(attributes.p);
  for (size_t i = 0; i < in.size(); ++i) {
    const uint64_t element = first + i;
    const uint32_t word = philox(key, element / 4, random.step)[element % 4];
    context.outputs[0].data[i] = uniform_from_bits(word) >= p ? in[i] / (1 - attributes.p) : 0.0;
  }
}

}  // namespace

const OpDef kDropout{
    .name = "dropout",
    .traits = {.elementwise = true, .random = true, .in_place = {0}, .foldable = false},
    .infer = infer,
    .gradient =
        [](GradientContext& context) {
          const Attributes attributes = context.op_node().attributes;
          context.input_gradients[0] = context.builder.add(kDropout, {context.output_gradients[0]}, attributes);
        },
    .evaluate = evaluate,
    .parse_attributes = &parse_attributes<DropoutAttributes>,
    .examples =
        [] {
          return std::vector<OpExample>{{{{DType::f32, {3, 5}}}, DropoutAttributes{0.25, "layers.0"}},
                                        {{{DType::f32, {2, 3, 7}}}, DropoutAttributes{0.75, "a \"stream\""}}};
        },
};

ValueId dropout(Builder& builder, ValueId x, double p, std::string stream) {
  if (p == 0) return x;
  return builder.add(kDropout, {x}, DropoutAttributes{p, std::move(stream)});
}

}  // namespace ingot
