#include "ops/glu_grad.h"

#include "graph/storage.h"
#include "ops/interpret.h"
#include "ops/registry.h"

namespace ingot {
namespace {

Result<std::vector<Type>> infer(std::span<const Type> inputs, const Attributes& attributes) {
  if (inputs.size() != 2) return failed_error("{} inputs, expected x and dy", inputs.size());
  INGOT_ASSIGN(const std::vector<Type> forward, kGlu.infer(inputs.first(1), attributes));
  if (!(computed(inputs[1]) == forward[0]))
    return failed_error("dy {}, expected {}", inputs[1].to_string(), forward[0].to_string());
  return std::vector<Type>{computed(inputs[0])};
}

struct Slope {
  RefTensor value, slope;
};

// The activation and its derivative at each element, from the op's own rules.
Slope differentiate(const OpDef& op, const RefTensor& x) {
  Graph graph;
  Builder builder(graph);
  const Type type{DType::f32, x.shape};
  const ValueId in = builder.input("x", type), ones = builder.input("ones", type);
  const NodeId node = builder.add_node(op, {in});
  const ValueId dy[] = {ones};
  GradientContext context{builder, node, dy, {kNone}};
  op.gradient(context);
  const auto values = interpret(graph, {{"x", x}, {"ones", {x.shape, std::vector<double>(x.data.size(), 1.0)}}});
  return {values[static_cast<size_t>(graph.node(node).outputs[0])],
          values[static_cast<size_t>(context.input_gradients[0])]};
}

void evaluate(const EvalContext& context) {
  const auto &x = context.inputs[0]->data, &dy = context.inputs[1]->data;
  const auto width = static_cast<size_t>(context.inputs[1]->shape[-1]);
  RefTensor gate = *context.inputs[1];
  const auto at = [&](size_t i) { return i / width * 2 * width + i % width; };
  for (size_t i = 0; i < dy.size(); ++i) gate.data[i] = x[at(i)];
  const Slope activation = differentiate(*find_op(context.node.attributes.as<GluAttributes>().activation), gate);
  for (size_t i = 0; i < dy.size(); ++i) {
    context.outputs[0].data[at(i)] = dy[i] * x[at(i) + width] * activation.slope.data[i];
    context.outputs[0].data[at(i) + width] = dy[i] * activation.value.data[i];
  }
}

}  // namespace

const OpDef kGluGrad{
    .name = "glu_grad",
    .traits = {.in_place = {0}, .fused = true},
    .infer = infer,
    .evaluate = evaluate,
    .parse_attributes = &parse_attributes<GluAttributes>,
    .examples =
        [] {
          std::vector<OpExample> examples;
          for (OpExample example : kGlu.examples()) {
            example.inputs.push_back({DType::f32, {2, 3, 5}});
            examples.push_back(std::move(example));
          }
          return examples;
        },
};

}  // namespace ingot
