#include "ops/matmul_add.h"

#include "ops/interpret.h"

namespace ingot {
namespace {

Result<std::vector<Type>> infer(std::span<const Type> inputs, const Attributes& attributes) {
  if (inputs.size() != 3) return failed_error("{} inputs, expected accumulator, a and b", inputs.size());
  INGOT_ASSIGN(const std::vector<Type> product, kMatmul.infer(inputs.subspan(1), attributes));
  if (!(inputs[0].shape == product[0].shape))
    return failed_error("the accumulator is {}, the product {}", inputs[0].to_string(), product[0].to_string());
  if (inputs[0].dtype != product[0].dtype && inputs[0].dtype != DType::f32)
    return failed_error("an accumulator of dtype {} for a product of {}", name_of(inputs[0].dtype),
                        name_of(product[0].dtype));
  return std::vector<Type>{inputs[0]};
}

void evaluate(const EvalContext& context) {
  std::vector<Type> types;
  for (size_t i = 1; i < 3; ++i) types.push_back(context.graph.type(context.node.inputs[i]));
  const RefTensor operands[] = {*context.inputs[1], *context.inputs[2]};
  context.outputs[0].data = evaluate_op(kMatmul, context.node.attributes, types, operands)[0].data;
  for (size_t i = 0; i < context.inputs[0]->data.size(); ++i) context.outputs[0].data[i] += context.inputs[0]->data[i];
}

}  // namespace

const OpDef kMatmulAdd{
    .name = "matmul_add",
    .traits = {.in_place = {0}, .product = true, .fused = true},
    .infer = infer,
    .evaluate = evaluate,
    .parse_attributes = &parse_attributes<MatmulAttributes>,
    .examples =
        [] {
          const auto type = [](Shape shape) { return Type{DType::f32, shape}; };
          return std::vector<OpExample>{{{type({3, 7}), type({3, 5}), type({5, 7})}, MatmulAttributes{}},
                                        {{type({3, 7}), type({5, 3}), type({5, 7})}, MatmulAttributes{true, false}},
                                        {{type({3, 7}), type({5, 3}), type({7, 5})}, MatmulAttributes{true, true}}};
        },
};

}  // namespace ingot
