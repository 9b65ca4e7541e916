#include "optim/step_graph.h"

#include <algorithm>

#include "autodiff/gradient.h"
#include "base/glob.h"
#include "ops/add.h"
#include "ops/constant.h"
#include "optim/output_gradients.h"

namespace ingot {
namespace {

bool is_frozen(const std::string& name, const std::vector<std::string>& freeze) {
  return std::ranges::any_of(freeze, [&](const std::string& pattern) { return glob_match(pattern, name); });
}

Status run(Graph& graph, std::span<const Pass> passes, bool fuse, PassContext& context, const PassTrace& trace) {
  const std::vector<Pass> chosen = passes_of_mode(passes, !fuse);
  if (!trace) return run_passes(graph, chosen, context);
  return run_passes(graph, chosen, context, [&](const Pass& pass, const Graph& now) { trace(pass.name, now); });
}

// The forward pass and its loss, as every program has them.
ValueId build_forward(const Model& model, const StepGraphOptions& options, bool dropout, Graph& graph) {
  Builder builder(graph);
  const Model::Forward forward = model.build(builder, {options.rows, options.tokens, dropout});
  const ValueId loss = model.build_loss(builder, forward);
  builder.output("loss", loss);
  if (!options.keep_activations) return loss;
  for (size_t i = 0; i < forward.hidden_states.size(); ++i)
    builder.output("hidden_states." + std::to_string(i), forward.hidden_states[i]);
  builder.output("final_norm", forward.final_norm);
  builder.output("logits", model.build_logits(builder, forward));
  return loss;
}

std::vector<std::pair<std::string, ValueId>> hidden_states_of(const Graph& graph) {
  std::vector<std::pair<std::string, ValueId>> states;
  for (const Output& output : graph.outputs)
    if (output.name.starts_with("hidden_states.")) states.emplace_back(output.name, output.value);
  return states;
}

void store_gradients(Graph& graph, ValueId loss, const StepGraphOptions& options) {
  std::vector<Source> parameters;
  std::vector<ValueId> wrt;
  for (const Source& source : graph.sources) {
    if (source.kind != SourceKind::parameter || is_frozen(source.name, options.freeze)) continue;
    parameters.push_back(source);
    wrt.push_back(source.value);
  }
  const std::vector<ValueId> gradients = add_gradients(graph, loss, wrt);
  Builder builder(graph);
  for (size_t i = 0; i < parameters.size(); ++i) {
    const Builder::Scope of_parameter(builder, parameters[i].name, true);
    const Type type = graph.type(parameters[i].value);
    const ValueId variable = builder.state(gradient_name(parameters[i].name), type);
    ValueId gradient = gradients[i] == kNone ? constant(builder, 0.0, type.shape) : gradients[i];
    if (options.accumulate) {
      // At the place of the gradient itself, so that it is added as early as it is known.
      if (const Node* producer = graph.producer(gradient)) builder.set_order(producer->order + 1);
      gradient = add(builder, variable, gradient);
      builder.set_order(kNone);
    }
    builder.store(variable, gradient);
  }
}

}  // namespace

Result<Graph> micro_step_graph(const Model& model, const StepGraphOptions& options, PassContext& context,
                               const PassTrace& trace) {
  Graph graph;
  graph.name = "micro_step";
  build_forward(model, options, options.dropout, graph);
  if (trace) trace("build", graph);
  INGOT_TRY(run(graph, forward_passes(), options.fuse, context, trace));
  if (options.keep_state_gradients) output_gradients(graph, graph.find_output("loss"), hidden_states_of(graph));
  store_gradients(graph, graph.find_output("loss"), options);
  if (trace) trace("differentiate", graph);
  INGOT_TRY(run(graph, backward_passes(), options.fuse, context, trace));
  graph.remove_dead_nodes();
  return graph.compacted();
}

Result<Graph> evaluation_graph(const Model& model, const StepGraphOptions& options, PassContext& context,
                               const PassTrace& trace) {
  Graph graph;
  graph.name = "evaluation";
  build_forward(model, options, false, graph);
  if (trace) trace("build", graph);
  INGOT_TRY(run(graph, forward_passes(), options.fuse, context, trace));
  INGOT_TRY(run(graph, backward_passes(), options.fuse, context, trace));
  graph.remove_dead_nodes();
  return graph.compacted();
}

Result<std::vector<TrainedParameter>> trained_parameters(const Model& model, const std::vector<std::string>& freeze) {
  std::vector<TrainedParameter> trained;
  for (const std::string& pattern : freeze)
    if (std::ranges::none_of(model.parameters(), [&](const ParameterSpec& p) { return glob_match(pattern, p.name); }))
      return usage_error("training.freeze: the pattern \"{}\" matches none of the model's parameters (such as {})",
                         pattern, model.parameters().front().name);
  for (const ParameterSpec& parameter : model.parameters()) {
    if (is_frozen(parameter.name, freeze)) continue;
    const bool is_inside = parameter.component != "embedding" && parameter.component != "head";
    trained.push_back({parameter.name, {DType::f32, parameter.shape}, is_inside && parameter.shape.rank() == 2});
  }
  if (trained.empty()) return usage_error("training.freeze matches every parameter: nothing is left to train");
  return trained;
}

}  // namespace ingot
