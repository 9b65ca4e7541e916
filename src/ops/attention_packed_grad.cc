#include "ops/attention_packed_grad.h"

#include "graph/storage.h"
#include "ops/attention_packed_layout.h"
#include "ops/attention_reference.h"
#include "ops/interpret.h"

namespace ingot {
namespace {

Result<std::vector<Type>> infer(std::span<const Type> inputs, const Attributes& attributes) {
  if (inputs.size() != 5)
    return failed_error("{} inputs, expected qkv, first_visible, out, lse and dout", inputs.size());
  INGOT_ASSIGN(const std::vector<Type> forward, kAttentionPacked.infer(inputs.first(2), attributes));
  if (!(computed(inputs[2]) == forward[0]) || !(inputs[3] == forward[1]) || !(computed(inputs[4]) == forward[0]))
    return failed_error("out {}, lse {} and dout {}, expected {}, {} and {}", inputs[2].to_string(),
                        inputs[3].to_string(), inputs[4].to_string(), forward[0].to_string(), forward[1].to_string(),
                        forward[0].to_string());
  return std::vector<Type>{computed(inputs[0])};
}

void evaluate(const EvalContext& context) {
  const auto& in = context.inputs;
  const auto& a = context.node.attributes.as<AttentionPackedAttributes>();
  const Shape& rows = in[0]->shape;
  const auto parts = attention_packed_layout::unpack(*in[0], a);
  auto grads = attention_packed_layout::make_parts(rows, a);
  attention_reference::backward(
      {rows[0], rows[1], a.heads, a.kv_heads, a.head_dim, attention_packed_layout::unpacked(a), context.random},
      {parts.q, parts.k, parts.v, *in[1]}, {*in[2], *in[3], *in[4]}, grads.q, grads.k, grads.v);
  attention_packed_layout::pack(grads, context.outputs[0]);
}

// The forward op's examples with its results; a made-up lse would be no sum of exponentials.
std::vector<OpExample> examples() {
  std::vector<OpExample> result;
  for (OpExample example : kAttentionPacked.examples()) {
    RefTensor qkv{example.inputs[0].shape, {}};
    for (int64_t e = 0; e < qkv.shape.elements(); ++e)
      qkv.data.push_back(static_cast<double>((e * 37) % 64) / 32.0 - 1.0);
    example.values[0] = qkv.data;
    const RefTensor tensors[] = {qkv, {example.inputs[1].shape, example.values[1]}};
    const auto outputs = evaluate_op(kAttentionPacked, example.attributes, example.inputs, tensors);
    const Type out{DType::f32, outputs[0].shape};
    example.inputs.insert(example.inputs.end(), {out, {DType::f32, outputs[1].shape}, out});
    example.values.insert(example.values.end(), {outputs[0].data, outputs[1].data, {}});
    result.push_back(std::move(example));
  }
  return result;
}

}  // namespace

const OpDef kAttentionPackedGrad{
    .name = "attention_packed_grad",
    .traits = {.random = true, .product = true, .fused = true},
    .infer = infer,
    .evaluate = evaluate,
    .parse_attributes = &parse_attributes<AttentionPackedAttributes>,
    .examples = examples,
};

}  // namespace ingot
