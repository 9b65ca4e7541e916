#include "ops/mul.h"
#include "ops/sum.h"
#include "optim/output_gradients.h"
#include "optim/step_graph.h"

namespace ingot {
namespace {

constexpr const char* kHidden = "hidden";

// The input takes the place of the hidden state in all that reads it.
ValueId cut_before(Graph& graph, ValueId state) {
  Builder builder(graph);
  const ValueId hidden = builder.input(kHidden, graph.type(state));
  graph.replace_uses(state, hidden);
  return hidden;
}

// What stands before the cut, or behind the outputs, is gone, and its parameters with it.
void keep_what_is_needed(Graph& graph) {
  graph.remove_dead_nodes();
  graph.remove_unread_sources();
}

Status run(Graph& graph, std::span<const Pass> passes, const StepGraphOptions& options, PassContext& context) {
  return run_passes(graph, passes_of_mode(passes, !options.fuse), context);
}

Result<Graph> finished(Graph graph, const StepGraphOptions& options, PassContext& context) {
  graph.remove_dead_nodes();
  INGOT_TRY(run(graph, backward_passes(), options, context));
  graph.remove_dead_nodes();
  return graph.compacted();
}

std::string state_name(int64_t layer) {
  return "hidden_states." + std::to_string(layer);
}

}  // namespace

Result<Graph> block_graph(const Model& model, int64_t layer, const StepGraphOptions& options, PassContext& context) {
  Graph graph;
  graph.name = "block";
  Builder builder(graph);
  const Model::Forward forward = model.build(builder, {options.rows, options.tokens, false});
  const auto at = static_cast<size_t>(layer);
  const ValueId hidden = cut_before(graph, forward.hidden_states[at]);
  const std::string out = state_name(layer + 1);
  builder.output(out, forward.hidden_states[at + 1]);
  keep_what_is_needed(graph);
  INGOT_TRY(run(graph, forward_passes(), options, context));

  // The gradient of this sum by what the block hands on is hidden_grad.
  const ValueId state = graph.find_output(out);
  const ValueId product = mul(builder, state, builder.input("hidden_grad", graph.type(state)));
  const ValueId loss = sum(builder, product, {0, 1, 2});
  std::vector<std::pair<std::string, ValueId>> wrt{{state_name(layer), hidden}};
  for (const Source& source : graph.sources)
    if (source.kind == SourceKind::parameter) wrt.emplace_back(source.name, source.value);
  output_gradients(graph, loss, wrt);
  return finished(std::move(graph), options, context);
}

Result<Graph> tail_graph(const Model& model, int64_t layer, const StepGraphOptions& options, PassContext& context) {
  Graph graph;
  graph.name = "tail";
  Builder builder(graph);
  Model::Forward forward = model.build(builder, {options.rows, options.tokens, false});
  const ValueId state = forward.hidden_states[static_cast<size_t>(layer)];
  const ValueId hidden = cut_before(graph, state);
  if (forward.final_norm == state) forward.final_norm = hidden;
  builder.output("final_norm", forward.final_norm);
  builder.output("loss", model.build_loss(builder, forward));
  keep_what_is_needed(graph);
  INGOT_TRY(run(graph, forward_passes(), options, context));
  output_gradients(graph, graph.find_output("loss"), {{state_name(layer), hidden}});
  return finished(std::move(graph), options, context);
}

}  // namespace ingot
