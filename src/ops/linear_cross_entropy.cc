#include "ops/linear_cross_entropy.h"

#include <cmath>

#include "ops/cross_entropy.h"
#include "ops/div.h"
#include "ops/interpret.h"
#include "ops/linear_cross_entropy_grad.h"
#include "ops/matmul.h"
#include "ops/mul.h"

namespace ingot {
namespace {

Result<std::vector<Type>> infer(std::span<const Type> inputs, const Attributes& attributes) {
  if (inputs.size() != 4) return failed_error("{} inputs, expected x, w, targets and scale", inputs.size());
  const Shape &x = inputs[0].shape, &w = inputs[1].shape;
  if (x.rank() != 2 || w.rank() != 2)
    return failed_error("x {} and w {}, expected two axes each", x.to_string(), w.to_string());
  const bool transposed = attributes.as<LinearCrossEntropyAttributes>().transpose_b;
  INGOT_ASSIGN(const MatmulExtents extents, matmul_extents(x, w, {false, transposed}));
  if (!(inputs[2] == Type{DType::i32, {extents.rows}}))
    return failed_error("targets {}, expected i32[{}]", inputs[2].to_string(), extents.rows);
  if (!(attributes.as<LinearCrossEntropyAttributes>().softcap >= 0)) return failed_error("a negative softcap");
  if (!(inputs[3] == Type{DType::f32, {}})) return failed_error("scale {}, expected f32[]", inputs[3].to_string());
  return std::vector<Type>{{DType::f32, {}}};
}

void gradient(GradientContext& context) {
  const Node node = context.op_node();
  Builder& builder = context.builder;
  const ValueId dloss = context.output_gradients[0];
  auto inputs = node.inputs;
  inputs.push_back(dloss);
  const auto outputs = builder.add_many(kLinearCrossEntropyGrad, std::move(inputs), node.attributes);
  context.input_gradients[0] = outputs[1];
  context.input_gradients[1] = outputs[2];
  context.input_gradients[3] = mul(builder, dloss, div(builder, node.outputs[0], node.inputs[3]));
}

void evaluate(const EvalContext& context) {
  const auto& [transposed, softcap] = context.node.attributes.as<LinearCrossEntropyAttributes>();
  std::vector<Type> types;
  std::vector<RefTensor> tensors;
  for (size_t i = 0; i < 4; ++i) {
    types.push_back(context.graph.type(context.node.inputs[i]));
    tensors.push_back(*context.inputs[i]);
  }
  auto products =
      evaluate_op(kMatmul, MatmulAttributes{false, transposed}, std::span(types).first(2), std::span(tensors).first(2));
  const Type loss_types[] = {{DType::f32, products[0].shape}, types[2], types[3]};
  const RefTensor loss_inputs[] = {capped_logits(std::move(products[0]), softcap), tensors[2], tensors[3]};
  context.outputs[0].data = evaluate_op(kCrossEntropy, {}, loss_types, loss_inputs)[0].data;
}

}  // namespace

RefTensor capped_logits(RefTensor products, double softcap) {
  if (softcap > 0)
    for (double& x : products.data) x = softcap * std::tanh(x / softcap);
  return products;
}

const OpDef kLinearCrossEntropy{
    .name = "linear_cross_entropy",
    .traits = {.product = true, .fused = true},
    .infer = infer,
    .gradient = gradient,
    .evaluate = evaluate,
    .parse_attributes = &parse_attributes<LinearCrossEntropyAttributes>,
    .examples =
        [] {
          const auto f32 = [](Shape shape) { return Type{DType::f32, shape}; };
          const Type targets{DType::i32, {4}};
          return std::vector<OpExample>{{{f32({4, 3}), f32({3, 7}), targets, f32({})},
                                         LinearCrossEntropyAttributes{false},
                                         {{}, {}, {6, -100, 0, 2}, {0.25}}},
                                        {{f32({4, 3}), f32({5, 3}), targets, f32({})},
                                         LinearCrossEntropyAttributes{true},
                                         {{}, {}, {1, 4, -100, 1}, {0.5}}},
                                        {{f32({4, 3}), f32({5, 3}), targets, f32({})},
                                         LinearCrossEntropyAttributes{true, 0.8},
                                         {{}, {}, {1, 4, -100, 1}, {0.5}}},
                                        {{f32({4, 3}), f32({5, 3}), targets, f32({})},
                                         LinearCrossEntropyAttributes{true},
                                         {{}, {}, {-100, -100, -100, -100}, {1.0}}}};
        },
};

}  // namespace ingot
