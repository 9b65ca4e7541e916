#include "ops/glu.h"

#include "graph/storage.h"
#include "ops/glu_grad.h"
#include "ops/interpret.h"
#include "ops/registry.h"

namespace ingot {
namespace {

Result<std::vector<Type>> infer(std::span<const Type> inputs, const Attributes& attributes) {
  if (inputs.size() != 1) return failed_error("{} inputs, expected 1", inputs.size());
  Type out = computed(inputs[0]);
  if (out.shape.rank() == 0 || out.shape[-1] % 2 != 0)
    return failed_error("x {}, expected an even last extent", out.shape.to_string());
  out.shape[-1] /= 2;
  const auto& name = attributes.as<GluAttributes>().activation;
  const OpDef* op = find_op(name);
  if (op == nullptr || !op->traits.elementwise || !op->infer(std::span(&out, 1), {}).ok())
    return failed_error("activation \"{}\", expected an elementwise op of one input without attributes", name);
  return std::vector<Type>{out};
}

void gradient(GradientContext& context) {
  const Node node = context.op_node();
  context.input_gradients[0] =
      context.builder.add(kGluGrad, {node.inputs[0], context.output_gradients[0]}, node.attributes);
}

void evaluate(const EvalContext& context) {
  RefTensor& out = context.outputs[0];
  const auto& x = context.inputs[0]->data;
  const auto width = static_cast<size_t>(out.shape[-1]);
  RefTensor gate = out;
  for (size_t i = 0; i < out.data.size(); ++i) gate.data[i] = x[i / width * 2 * width + i % width];
  const OpDef& activation = *find_op(context.node.attributes.as<GluAttributes>().activation);
  const Type type{DType::f32, out.shape};
  out.data = evaluate_op(activation, {}, {&type, 1}, {&gate, 1})[0].data;
  for (size_t i = 0; i < out.data.size(); ++i) out.data[i] *= x[i / width * 2 * width + width + i % width];
}

}  // namespace

const OpDef kGlu{
    .name = "glu",
    .traits = {.fused = true},
    .infer = infer,
    .gradient = gradient,
    .evaluate = evaluate,
    .parse_attributes = &parse_attributes<GluAttributes>,
    .examples =
        [] {
          std::vector<OpExample> examples;
          for (const char* activation : {"silu", "gelu", "gelu_tanh", "relu", "sigmoid"})
            examples.push_back({{{DType::f32, {2, 3, 10}}}, GluAttributes{activation}, {}, -2.0, 2.0});
          return examples;
        },
};

}  // namespace ingot
