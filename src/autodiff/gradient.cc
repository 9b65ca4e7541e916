#include "autodiff/gradient.h"

#include <map>

#include "ops/add.h"
#include "ops/constant.h"

namespace ingot {
namespace {

// Which values lie on a way from some `wrt` to the loss: only these need gradients.
std::vector<bool> depends_on(const Graph& graph, std::span<const NodeId> order, std::span<const ValueId> wrt) {
  std::vector<bool> result(static_cast<size_t>(graph.value_count()), false);
  for (ValueId id : wrt) result[static_cast<size_t>(id)] = true;
  for (NodeId id : order) {
    const Node& node = graph.node(id);
    if (node.op->gradient == nullptr) continue;
    bool any = false;
    for (ValueId input : node.inputs) any = any || result[static_cast<size_t>(input)];
    if (any)
      for (ValueId output : node.outputs) result[static_cast<size_t>(output)] = true;
  }
  return result;
}

}  // namespace

std::vector<ValueId> add_gradients(Graph& graph, ValueId loss, std::span<const ValueId> wrt) {
  INGOT_CHECK(graph.shape(loss).rank() == 0, "gradients of a loss of shape {}", graph.shape(loss).to_string());
  const std::vector<NodeId> order = graph.schedule();
  const std::vector<bool> wanted = depends_on(graph, order, wrt);
  std::map<ValueId, ValueId> gradients;
  Builder builder(graph);
  {
    Builder::Scope scope(builder, "loss", true);
    gradients[loss] = constant(builder, 1.0);
  }
  for (auto it = order.rbegin(); it != order.rend(); ++it) {
    const Node node = graph.node(*it);  // a copy: adding nodes moves them
    std::vector<ValueId> of_outputs;
    bool any = false;
    for (ValueId output : node.outputs) {
      const auto found = gradients.find(output);
      of_outputs.push_back(found == gradients.end() ? kNone : found->second);
      any = any || of_outputs.back() != kNone;
    }
    if (!any || node.op->gradient == nullptr || !wanted[static_cast<size_t>(node.outputs[0])]) continue;
    Builder::Scope scope(builder, node.path, true);
    GradientContext context{builder, *it, of_outputs, std::vector<ValueId>(node.inputs.size(), kNone)};
    node.op->gradient(context);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId input = node.inputs[i], contribution = context.input_gradients[i];
      if (contribution == kNone || !wanted[static_cast<size_t>(input)]) continue;
      INGOT_CHECK(graph.shape(contribution) == graph.shape(input),
                  "{}: the gradient of input {} has shape {}, the input {}", node.op->name, i,
                  graph.shape(contribution).to_string(), graph.shape(input).to_string());
      const auto [slot, first] = gradients.emplace(input, contribution);
      if (!first) slot->second = add(builder, slot->second, contribution);
    }
  }
  std::vector<ValueId> result;
  for (ValueId id : wrt) {
    const auto found = gradients.find(id);
    result.push_back(found == gradients.end() ? kNone : found->second);
  }
  return result;
}

}  // namespace ingot
