#include "optim/output_gradients.h"

#include "autodiff/gradient.h"
#include "ops/constant.h"
#include "optim/update_graph.h"

namespace ingot {

void output_gradients(Graph& graph, ValueId loss, const std::vector<std::pair<std::string, ValueId>>& wrt) {
  std::vector<ValueId> values;
  for (const auto& [name, value] : wrt) values.push_back(value);
  const std::vector<ValueId> gradients = add_gradients(graph, loss, values);
  Builder builder(graph);
  for (size_t i = 0; i < wrt.size(); ++i) {
    const bool depends = gradients[i] != kNone;
    builder.output(gradient_name(wrt[i].first),
                   depends ? gradients[i] : constant(builder, 0.0, graph.shape(values[i])));
  }
}

}  // namespace ingot
