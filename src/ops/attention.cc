#include "ops/attention.h"

#include "graph/storage.h"
#include "ops/attention_grad.h"
#include "ops/attention_reference.h"

namespace ingot {
namespace {

Result<std::vector<Type>> infer(std::span<const Type> inputs, const Attributes& attributes) {
  if (inputs.size() != 4) return failed_error("{} inputs, expected q, k, v and first_visible", inputs.size());
  const Shape &q = inputs[0].shape, &k = inputs[1].shape;
  if (q.rank() != 4 || k.rank() != 4 || !(inputs[2].shape == k))
    return failed_error("q {}, k {} and v {}, expected [B,T,H,D] and twice [B,T,Hkv,D]", inputs[0].to_string(),
                        inputs[1].to_string(), inputs[2].to_string());
  if (k[0] != q[0] || k[1] != q[1] || k[3] != q[3] || k[2] == 0 || q[2] % k[2] != 0)
    return failed_error("k {} does not fit q {}", k.to_string(), q.to_string());
  if (!(inputs[3] == Type{DType::i32, {q[0], q[1]}}))
    return failed_error("first_visible {}, expected i32[{},{}]", inputs[3].to_string(), q[0], q[1]);
  const auto& a = attributes.as<AttentionAttributes>();
  if (a.window < 0 || !(a.dropout >= 0 && a.dropout < 1))
    return failed_error("window {} and dropout {}, expected at least 0 and within [0, 1)", a.window, a.dropout);
  if (!(a.softcap >= 0)) return failed_error("a softcap of {}, expected at least 0", a.softcap);
  return std::vector<Type>{computed(inputs[0]), {DType::f32, {q[0], q[2], q[1], 2}}};
}

void gradient(GradientContext& context) {
  const Node node = context.op_node();
  auto inputs = node.inputs;
  inputs.insert(inputs.end(), {node.outputs[0], node.outputs[1], context.output_gradients[0]});
  const auto grads = context.builder.add_many(kAttentionGrad, std::move(inputs), node.attributes);
  for (size_t i = 0; i < 3; ++i) context.input_gradients[i] = grads[i];
}

void evaluate(const EvalContext& context) {
  const Shape &q = context.inputs[0]->shape, &k = context.inputs[1]->shape;
  attention_reference::forward(
      {q[0], q[1], q[2], k[2], q[3], context.node.attributes.as<AttentionAttributes>(), context.random},
      {*context.inputs[0], *context.inputs[1], *context.inputs[2], *context.inputs[3]}, context.outputs[0],
      context.outputs[1]);
}

std::vector<OpExample> examples() {
  const auto example = [](Shape q, int64_t kv_heads, std::vector<double> first_visible, AttentionAttributes a) {
    Shape k = q;
    k[2] = kv_heads;
    return OpExample{{{DType::f32, q}, {DType::f32, k}, {DType::f32, k}, {DType::i32, {q[0], q[1]}}},
                     a,
                     {{}, {}, {}, std::move(first_visible)}};
  };
  return {example({1, 5, 2, 3}, 2, {0, 0, 0, 0, 0}, {0.6, 0, 0.0, ""}),
          example({2, 5, 4, 3}, 2, {0, 0, 2, 2, 2, 0, 1, 1, 1, 1}, {0.6, 2, 0.0, ""}),
          example({2, 4, 2, 3}, 1, {0, 0, 0, 0, 4, 4, 0, 3}, {0.5, 0, 0.3, "h.0.attn"}),
          example({1, 5, 2, 3}, 1, {0, 0, 0, 2, 2}, {1.5, 3, 0.0, "", 0.7})};
}

}  // namespace

const OpDef kAttention{
    .name = "attention",
    .traits = {.saved_outputs = 1, .random = true, .product = true, .fused = true},
    .infer = infer,
    .gradient = gradient,
    .evaluate = evaluate,
    .parse_attributes = &parse_attributes<AttentionAttributes>,
    .examples = examples,
};

}  // namespace ingot
