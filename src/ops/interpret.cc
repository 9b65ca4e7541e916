#include "ops/interpret.h"

#include "graph/builder.h"
#include "graph/storage.h"

namespace ingot {

std::vector<RefTensor> interpret(const Graph& graph, const std::map<std::string, RefTensor>& sources,
                                 const RandomState& random) {
  std::vector<RefTensor> values(static_cast<size_t>(graph.value_count()));
  for (const Source& source : graph.sources) {
    const auto it = sources.find(source.name);
    INGOT_CHECK(it != sources.end(), "no value given for the source {}", source.name);
    INGOT_CHECK(it->second.shape == graph.shape(source.value), "{} has shape {}, given {}", source.name,
                graph.shape(source.value).to_string(), it->second.shape.to_string());
    values[static_cast<size_t>(source.value)] = it->second;
  }
  for (NodeId id : graph.schedule()) {
    const Node& node = graph.node(id);
    std::vector<const RefTensor*> inputs;
    for (ValueId input : node.inputs) inputs.push_back(&values[static_cast<size_t>(input)]);
    std::vector<RefTensor> outputs;
    for (ValueId output : node.outputs) {
      const Shape& shape = graph.shape(output);
      outputs.push_back({shape, std::vector<double>(static_cast<size_t>(shape.elements()), 0.0)});
    }
    node.op->evaluate({graph, node, inputs, outputs, random});
    for (size_t i = 0; i < outputs.size(); ++i) {
      const DType dtype = graph.type(node.outputs[i]).dtype;
      if (is_narrow(dtype))
        for (double& value : outputs[i].data) value = stored(value, dtype);
      values[static_cast<size_t>(node.outputs[i])] = std::move(outputs[i]);
    }
  }
  return values;
}

std::map<std::string, RefTensor> interpret_results(const Graph& graph, const std::map<std::string, RefTensor>& sources,
                                                   const RandomState& random) {
  const std::vector<RefTensor> values = interpret(graph, sources, random);
  std::map<std::string, RefTensor> results;
  for (const Output& output : graph.outputs) results[output.name] = values[static_cast<size_t>(output.value)];
  for (const Store& store : graph.stores)
    results[graph.source_of(store.variable)->name] = values[static_cast<size_t>(store.value)];
  return results;
}

std::vector<RefTensor> evaluate_op(const OpDef& op, const Attributes& attributes, std::span<const Type> input_types,
                                   std::span<const RefTensor> inputs, const RandomState& random) {
  INGOT_CHECK(inputs.size() == input_types.size(), "{} tensors of {} types", inputs.size(), input_types.size());
  Graph graph;
  Builder builder(graph);
  std::vector<ValueId> ids;
  std::vector<const RefTensor*> tensors;
  for (size_t i = 0; i < inputs.size(); ++i) {
    ids.push_back(builder.input(std::to_string(i), input_types[i]));
    tensors.push_back(&inputs[i]);
  }
  const Node& node = graph.node(builder.add_node(op, ids, attributes));
  std::vector<RefTensor> outputs;
  for (ValueId output : node.outputs) {
    const Shape& shape = graph.shape(output);
    outputs.push_back({shape, std::vector<double>(static_cast<size_t>(shape.elements()), 0.0)});
  }
  op.evaluate({graph, node, tensors, outputs, random});
  return outputs;
}

}  // namespace ingot
