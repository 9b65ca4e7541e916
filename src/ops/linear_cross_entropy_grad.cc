#include "ops/linear_cross_entropy_grad.h"

#include "graph/storage.h"
#include "ops/cross_entropy_grad.h"
#include "ops/interpret.h"
#include "ops/matmul.h"

namespace ingot {
namespace {

Result<std::vector<Type>> infer(std::span<const Type> inputs, const Attributes& attributes) {
  if (inputs.size() != 5) return failed_error("{} inputs, expected x, w, targets, scale and dloss", inputs.size());
  INGOT_ASSIGN(const std::vector<Type> loss, kLinearCrossEntropy.infer(inputs.first(4), attributes));
  if (!(inputs[4] == loss[0])) return failed_error("dloss {}, expected f32[]", inputs[4].to_string());
  return std::vector<Type>{loss[0], computed(inputs[0]), computed(inputs[1])};
}

void evaluate(const EvalContext& context) {
  const auto& [transposed, softcap] = context.node.attributes.as<LinearCrossEntropyAttributes>();
  std::vector<Type> types;
  std::vector<RefTensor> in;
  for (size_t i = 0; i < 5; ++i) {
    types.push_back({context.graph.type(context.node.inputs[i]).dtype, context.inputs[i]->shape});
    in.push_back(*context.inputs[i]);
  }
  context.outputs[0].data =
      evaluate_op(kLinearCrossEntropy, context.node.attributes, std::span(types).first(4), std::span(in).first(4))[0]
          .data;
  const auto product = [](const RefTensor& a, const RefTensor& b, MatmulAttributes flags) {
    const Type operand_types[] = {{DType::f32, a.shape}, {DType::f32, b.shape}};
    const RefTensor operands[] = {a, b};
    return std::move(evaluate_op(kMatmul, flags, operand_types, operands)[0]);
  };
  const RefTensor &x = in[0], &w = in[1];
  const RefTensor logits = capped_logits(product(x, w, {false, transposed}), softcap);
  const Type loss_types[] = {{DType::f32, logits.shape}, types[2], types[3], types[4]};
  const RefTensor loss_inputs[] = {logits, in[2], in[3], in[4]};
  RefTensor d = evaluate_op(kCrossEntropyGrad, {}, loss_types, loss_inputs)[0];
  for (size_t i = 0; softcap > 0 && i < d.data.size(); ++i)
    d.data[i] *= 1 - logits.data[i] / softcap * (logits.data[i] / softcap);
  for (double& one : d.data) one = stored(one, types[0].dtype);
  context.outputs[1].data = product(d, w, {false, !transposed}).data;
  context.outputs[2].data = (transposed ? product(d, x, {true, false}) : product(x, d, {true, false})).data;
}

}  // namespace

const OpDef kLinearCrossEntropyGrad{
    .name = "linear_cross_entropy_grad",
    .traits = {.product = true, .fused = true},
    .infer = infer,
    .evaluate = evaluate,
    .parse_attributes = &parse_attributes<LinearCrossEntropyAttributes>,
    .examples =
        [] {
          std::vector<OpExample> examples;
          for (OpExample example : kLinearCrossEntropy.examples()) {
            example.inputs.push_back({DType::f32, {}});
            example.values.push_back({1.5});
            examples.push_back(std::move(example));
          }
          return examples;
        },
};

}  // namespace ingot
