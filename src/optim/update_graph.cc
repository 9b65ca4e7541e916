#include "optim/update_graph.h"

#include <algorithm>
#include <numeric>

#include "ops/clip_factor.h"
#include "ops/sum_squares.h"
#include "optim/parameter_update.h"

namespace ingot {

std::string gradient_name(const std::string& parameter) {
  return "grad." + parameter;
}

namespace {

ValueId stored_in(const Graph& graph, ValueId variable) {
  return std::ranges::find(graph.stores, variable, &Store::variable)->value;
}

}  // namespace

Graph update_graph(std::span<const TrainedParameter> parameters, const ParameterGroups& groups,
                   const OptimizerConfig& config, std::span<const WeightCopy> copies) {
  INGOT_CHECK(groups.parameters.size() == parameters.size(), "settings for {} of {} parameters",
              groups.parameters.size(), parameters.size());
  Graph graph;
  graph.name = "update";
  Builder builder(graph);
  Builder::Scope scope(builder, "optimizer");
  const ValueId control = builder.input("control", {DType::f32, {3}});
  const ValueId gradient_scale = builder.input("gradient_scale", {DType::f32, {}});
  std::vector<ValueId> weights, gradients, squares;
  for (const TrainedParameter& parameter : parameters) {
    Builder::Scope of_parameter(builder, parameter.name);
    weights.push_back(builder.parameter(parameter.name, parameter.type));
    gradients.push_back(builder.state(gradient_name(parameter.name), parameter.type));
    squares.push_back(sum_squares(builder, gradients.back()));
  }
  std::vector<ValueId> clips;
  for (size_t group = 0; group < groups.max_grad_norms.size(); ++group) {
    ClipFactorAttributes attributes{groups.max_grad_norms[group], {}};
    for (size_t i = 0; i < parameters.size(); ++i)
      if (groups.parameters[i].clip_group == static_cast<int>(group))
        attributes.members.push_back(static_cast<int64_t>(i));
    clips.push_back(clip_factor(builder, squares, gradient_scale, std::move(attributes)));
  }
  ClipFactorAttributes everything{0.0, std::vector<int64_t>(parameters.size())};
  std::iota(everything.members.begin(), everything.members.end(), int64_t{0});
  builder.output("clip", clip_factor(builder, squares, gradient_scale, std::move(everything)));
  for (size_t i = 0; i < parameters.size(); ++i) {
    const ParameterSettings& settings = groups.parameters[i];
    Builder::Scope of_parameter(builder, parameters[i].name);
    std::vector<ValueId> state;
    for (const OptimizerState& one : optimizer_state(parameters[i], config))
      state.push_back(builder.state(one.variable(), one.type));
    add_parameter_update(builder,
                         {weights[i], gradients[i], state, control, clips[static_cast<size_t>(settings.clip_group)]},
                         settings, config, parameters[i]);
    refresh_copy(builder, copies, parameters[i].name, stored_in(graph, weights[i]));
  }
  return graph;
}

}  // namespace ingot
