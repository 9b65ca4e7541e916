#include "ops/linear.h"

#include "ops/elementwise.h"
#include "ops/interpret.h"
#include "ops/matmul.h"

namespace ingot {
namespace {

// The types of the product and of the extra inputs broadcast to it: registers 0….
Result<std::vector<Type>> input_registers(std::span<const Type> inputs, const LinearAttributes& attributes) {
  if (inputs.size() < 2) return failed_error("{} inputs, expected at least x and w", inputs.size());
  if (inputs[1].shape.rank() != 2) return failed_error("w {}, expected one matrix", inputs[1].shape.to_string());
  INGOT_ASSIGN(std::vector<Type> types,
               kMatmul.infer(inputs.first(2), MatmulAttributes{false, attributes.transpose_b}));
  const Shape shape = types[0].shape;
  for (const Type& extra : inputs.subspan(2)) {
    if (extra.packed_bytes > 0) return failed_error("an extra input is packed, expected plain");
    INGOT_ASSIGN(const Shape together, broadcast_shapes(extra.shape, shape));
    if (!(together == shape))
      return failed_error("{} does not broadcast to the product's {}", extra.shape.to_string(), shape.to_string());
    types.push_back({extra.dtype, shape});
  }
  return types;
}

Result<std::vector<Type>> infer(std::span<const Type> inputs, const Attributes& attributes) {
  const auto& a = attributes.as<LinearAttributes>();
  INGOT_ASSIGN(const std::vector<Type> types, input_registers(inputs, a));
  INGOT_TRY(check_program_outputs(a.program, types.size(), a.outputs));
  INGOT_ASSIGN(const std::vector<Type> registers, infer_program(a.program, types));
  std::vector<Type> outputs;
  for (int64_t output : a.outputs) outputs.push_back(registers[static_cast<size_t>(output)]);
  return outputs;
}

void evaluate(const EvalContext& context) {
  const auto& a = context.node.attributes.as<LinearAttributes>();
  std::vector<Type> in;
  for (ValueId input : context.node.inputs) in.push_back(context.graph.type(input));
  const std::vector<Type> types = input_registers(in, a).value();
  const RefTensor operands[] = {*context.inputs[0], *context.inputs[1]};
  std::vector<RefTensor> registers =
      evaluate_op(kMatmul, MatmulAttributes{false, a.transpose_b}, std::span(in).first(2), operands);
  for (size_t i = 2; i < context.inputs.size(); ++i)
    registers.push_back(broadcast_reference(*context.inputs[i], types[0].shape));
  registers = evaluate_program(a.program, types, std::move(registers), context.random);
  for (size_t i = 0; i < a.outputs.size(); ++i)
    context.outputs[i].data = std::move(registers[static_cast<size_t>(a.outputs[i])].data);
}

std::vector<OpExample> examples() {
  const auto type = [](Shape shape) { return Type{DType::f32, shape}; };
  return {{{type({3, 5}), type({5, 7})}, LinearAttributes{}},
          {{type({2, 3, 5}), type({7, 5}), type({7}), type({2, 3, 7})},
           LinearAttributes{true, {{"add", {0, 1}, "{}"}, {"gelu_tanh", {3}, "{}"}, {"add", {2, 4}, "{}"}}, {3, 5}}},
          {{type({4, 5}), type({5, 3}), type({4, 3})}, LinearAttributes{false, {{"gelu_grad", {1, 0}, "{}"}}, {2}}}};
}

}  // namespace

const OpDef kLinear{
    .name = "linear",
    .traits = {.random = true, .product = true, .fused = true},
    .infer = infer,
    .evaluate = evaluate,
    .parse_attributes = &parse_attributes<LinearAttributes>,
    .examples = examples,
};

}  // namespace ingot
