#include "ops/attention_grad.h"

#include "graph/storage.h"
#include "ops/attention_reference.h"
#include "ops/interpret.h"

namespace ingot {
namespace {

Result<std::vector<Type>> infer(std::span<const Type> inputs, const Attributes& attributes) {
  if (inputs.size() != 7)
    return failed_error("{} inputs, expected q, k, v, first_visible, out, lse and dout", inputs.size());
  INGOT_ASSIGN(const std::vector<Type> forward, kAttention.infer(inputs.first(4), attributes));
  if (!(computed(inputs[4]) == forward[0]) || !(inputs[5] == forward[1]) || !(computed(inputs[6]) == forward[0]))
    return failed_error("out {}, lse {} and dout {}, expected {}, {} and {}", inputs[4].to_string(),
                        inputs[5].to_string(), inputs[6].to_string(), forward[0].to_string(), forward[1].to_string(),
                        forward[0].to_string());
  return std::vector<Type>{computed(inputs[0]), computed(inputs[1]), computed(inputs[2])};
}

void evaluate(const EvalContext& context) {
  const auto& in = context.inputs;
  const Shape &q = in[0]->shape, &k = in[1]->shape;
  attention_reference::backward(
      {q[0], q[1], q[2], k[2], q[3], context.node.attributes.as<AttentionAttributes>(), context.random},
      {*in[0], *in[1], *in[2], *in[3]}, {*in[4], *in[5], *in[6]}, context.outputs[0], context.outputs[1],
      context.outputs[2]);
}

// The forward op's examples with its results; a made-up lse would be no sum of exponentials.
std::vector<OpExample> examples() {
  std::vector<OpExample> result;
  for (OpExample example : kAttention.examples()) {
    std::vector<RefTensor> tensors;
    for (size_t i = 0; i < example.inputs.size(); ++i) {
      RefTensor tensor{example.inputs[i].shape, example.values[i]};
      for (int64_t e = 0; example.values[i].empty() && e < tensor.shape.elements(); ++e)
        tensor.data.push_back(static_cast<double>((e * 37 + static_cast<int64_t>(i) * 11) % 64) / 32.0 - 1.0);
      example.values[i] = tensor.data;
      tensors.push_back(std::move(tensor));
    }
    const auto outputs = evaluate_op(kAttention, example.attributes, example.inputs, tensors);
    const Type out = example.inputs[0];
    example.inputs.insert(example.inputs.end(), {out, {DType::f32, outputs[1].shape}, out});
    example.values.insert(example.values.end(), {outputs[0].data, outputs[1].data, {}});
    result.push_back(std::move(example));
  }
  return result;
}

}  // namespace

const OpDef kAttentionGrad{
    .name = "attention_grad",
    .traits = {.random = true, .product = true, .fused = true},
    .infer = infer,
    .evaluate = evaluate,
    .parse_attributes = &parse_attributes<AttentionAttributes>,
    .examples = examples,
};

}  // namespace ingot
