#include "ops/cluster.h"

#include "ops/elementwise.h"

namespace ingot {
namespace {

Result<std::vector<Type>> broadcast_inputs(std::span<const Type> inputs) {
  if (inputs.empty()) return failed_error("no inputs");
  Shape shape = inputs[0].shape;
  for (const Type& type : inputs) {
    if (type.packed_bytes > 0) return failed_error("an input is packed, expected plain");
    INGOT_ASSIGN(shape, broadcast_shapes(shape, type.shape));
  }
  std::vector<Type> types;
  for (const Type& type : inputs) types.push_back({type.dtype, shape});
  return types;
}

Result<std::vector<Type>> infer(std::span<const Type> inputs, const Attributes& attributes) {
  const auto& a = attributes.as<ClusterAttributes>();
  INGOT_ASSIGN(const std::vector<Type> types, broadcast_inputs(inputs));
  INGOT_TRY(check_program_outputs(a.program, inputs.size(), a.outputs));
  INGOT_ASSIGN(const std::vector<Type> registers, infer_program(a.program, types));
  std::vector<Type> outputs;
  for (int64_t output : a.outputs) outputs.push_back(registers[static_cast<size_t>(output)]);
  return outputs;
}

void evaluate(const EvalContext& context) {
  const auto& a = context.node.attributes.as<ClusterAttributes>();
  std::vector<Type> types;
  std::vector<RefTensor> inputs;
  for (size_t i = 0; i < context.inputs.size(); ++i) {
    const Shape& shape = context.outputs[0].shape;
    types.push_back({context.graph.type(context.node.inputs[i]).dtype, shape});
    inputs.push_back(broadcast_reference(*context.inputs[i], shape));
  }
  auto registers = evaluate_program(a.program, types, std::move(inputs), context.random);
  for (size_t i = 0; i < a.outputs.size(); ++i)
    context.outputs[i].data = std::move(registers[static_cast<size_t>(a.outputs[i])].data);
}

std::vector<OpExample> examples() {
  return {{{{DType::f32, {3, 5}}, {DType::f32, {5}}},
           ClusterAttributes{{{"add", {0, 1}, "{}"}, {"gelu", {2}, "{}"}, {"mul", {3, 0}, "{}"}}, {2, 4}}},
          {{{DType::f32, {2, 1, 7}}, {DType::f32, {2, 3, 7}}, {DType::f32, {}}},
           ClusterAttributes{{{"mul", {0, 2}, "{}"},
                              {"dropout", {3}, "{p=0.25, stream=\"h.1\"}"},
                              {"sub", {1, 4}, "{}"},
                              {"scale", {5}, "{factor=0.5}"}},
                             {6}}}};
}

}  // namespace

const OpDef kCluster{
    .name = "cluster",
    .traits = {.random = true, .in_place = {0}, .fused = true},
    .infer = infer,
    .evaluate = evaluate,
    .parse_attributes = &parse_attributes<ClusterAttributes>,
    .examples = examples,
};

}  // namespace ingot
