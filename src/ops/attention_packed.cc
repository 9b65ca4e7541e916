#include "ops/attention_packed.h"

#include <algorithm>

#include "graph/storage.h"
#include "ops/attention_packed_grad.h"
#include "ops/attention_packed_layout.h"
#include "ops/attention_reference.h"

namespace ingot {
namespace attention_packed_layout {

Parts make_parts(const Shape& rows, const AttentionPackedAttributes& a) {
  const auto zeros = [&](int64_t heads) {
    const Shape shape{rows[0], rows[1], heads, a.head_dim};
    return RefTensor{shape, std::vector<double>(static_cast<size_t>(shape.elements()), 0.0)};
  };
  return {zeros(a.heads), zeros(a.kv_heads), zeros(a.kv_heads)};
}

Parts unpack(const RefTensor& qkv, const AttentionPackedAttributes& a) {
  Parts parts = make_parts(qkv.shape, a);
  auto from = qkv.data.begin();
  for (int64_t row = 0; row < qkv.shape[0] * qkv.shape[1]; ++row)
    for (RefTensor* part : list(parts)) {
      const int64_t width = part->shape[2] * part->shape[3];
      std::copy_n(from, width, part->data.begin() + row * width);
      from += width;
    }
  return parts;
}

void pack(Parts& parts, RefTensor& qkv) {
  auto to = qkv.data.begin();
  for (int64_t row = 0; row < qkv.shape[0] * qkv.shape[1]; ++row)
    for (const RefTensor* part : list(parts)) {
      const int64_t width = part->shape[2] * part->shape[3];
      to = std::copy_n(part->data.begin() + row * width, width, to);
    }
}

}  // namespace attention_packed_layout

namespace {

Result<std::vector<Type>> infer(std::span<const Type> inputs, const Attributes& attributes) {
  if (inputs.size() != 2) return failed_error("{} inputs, expected qkv and first_visible", inputs.size());
  const auto& a = attributes.as<AttentionPackedAttributes>();
  const Shape& rows = inputs[0].shape;
  if (a.kv_heads <= 0 || a.heads <= 0 || a.heads % a.kv_heads != 0 || a.head_dim <= 0)
    return failed_error("{} heads on {} key and value heads of {}", a.heads, a.kv_heads, a.head_dim);
  if (a.window < 0 || !(a.dropout >= 0 && a.dropout < 1))
    return failed_error("window {} and dropout {}, expected at least 0 and within [0, 1)", a.window, a.dropout);
  if (!(a.softcap >= 0)) return failed_error("a softcap of {}, expected at least 0", a.softcap);
  if (rows.rank() != 3 || rows[2] != (a.heads + 2 * a.kv_heads) * a.head_dim)
    return failed_error("qkv {}, expected [B,T,{}]", rows.to_string(), (a.heads + 2 * a.kv_heads) * a.head_dim);
  if (!(inputs[1] == Type{DType::i32, {rows[0], rows[1]}}))
    return failed_error("first_visible {}, expected i32[{},{}]", inputs[1].to_string(), rows[0], rows[1]);
  return std::vector<Type>{{computed(inputs[0]).dtype, {rows[0], rows[1], a.heads * a.head_dim}},
                           {DType::f32, {rows[0], a.heads, rows[1], 2}}};
}

void gradient(GradientContext& context) {
  const Node node = context.op_node();
  context.input_gradients[0] = context.builder.add(
      kAttentionPackedGrad,
      {node.inputs[0], node.inputs[1], node.outputs[0], node.outputs[1], context.output_gradients[0]}, node.attributes);
}

void evaluate(const EvalContext& context) {
  const auto& a = context.node.attributes.as<AttentionPackedAttributes>();
  const Shape& rows = context.inputs[0]->shape;
  const auto parts = attention_packed_layout::unpack(*context.inputs[0], a);
  attention_reference::forward(
      {rows[0], rows[1], a.heads, a.kv_heads, a.head_dim, attention_packed_layout::unpacked(a), context.random},
      {parts.q, parts.k, parts.v, *context.inputs[1]}, context.outputs[0], context.outputs[1]);
}

std::vector<OpExample> examples() {
  const auto example = [](int64_t batch, int64_t tokens, std::vector<double> first_visible,
                          AttentionPackedAttributes a) {
    return OpExample{
        {{DType::f32, {batch, tokens, (a.heads + 2 * a.kv_heads) * a.head_dim}}, {DType::i32, {batch, tokens}}},
        a,
        {{}, std::move(first_visible)}};
  };
  return {example(1, 5, {0, 0, 0, 0, 0}, {2, 2, 3, 0.6, 0, 0.0, ""}),
          example(2, 4, {0, 0, 2, 2, 0, 1, 1, 1}, {4, 2, 2, 0.7, 2, 0.0, ""}),
          example(2, 3, {0, 0, 0, 3, 0, 2}, {2, 1, 3, 0.5, 0, 0.3, "h.0.attn"}),
          example(1, 5, {0, 0, 0, 2, 2}, {2, 1, 3, 1.5, 3, 0.0, "", 0.7})};
}

}  // namespace

const OpDef kAttentionPacked{
    .name = "attention_packed",
    .traits = {.saved_outputs = 1, .random = true, .product = true, .fused = true},
    .infer = infer,
    .gradient = gradient,
    .evaluate = evaluate,
    .parse_attributes = &parse_attributes<AttentionPackedAttributes>,
    .examples = examples,
};

}  // namespace ingot
