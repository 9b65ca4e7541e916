#include "optim/update_graph.h"

#include <cmath>
#include <numeric>

#include "ops/adamw.h"
#include "ops/clip_factor.h"
#include "ops/sum_squares.h"

namespace ingot {

std::string gradient_name(const std::string& parameter) {
  return "grad." + parameter;
}
std::string first_moment_name(const std::string& parameter) {
  return "adam_m." + parameter;
}
std::string second_moment_name(const std::string& parameter) {
  return "adam_v." + parameter;
}

Graph update_graph(std::span<const TrainedParameter> parameters, const ParameterGroups& groups,
                   const AdamwConfig& config) {
  INGOT_CHECK(groups.parameters.size() == parameters.size(), "settings for {} of {} parameters",
              groups.parameters.size(), parameters.size());
  Graph graph;
  graph.name = "update";
  Builder builder(graph);
  Builder::Scope scope(builder, "optimizer");
  const ValueId control = builder.input("control", {DType::f32, {3}});
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
    clips.push_back(clip_factor(builder, squares, std::move(attributes)));
  }
  ClipFactorAttributes everything{0.0, std::vector<int64_t>(parameters.size())};
  std::iota(everything.members.begin(), everything.members.end(), int64_t{0});
  builder.output("clip", clip_factor(builder, squares, std::move(everything)));
  for (size_t i = 0; i < parameters.size(); ++i) {
    const ParameterSettings& settings = groups.parameters[i];
    Builder::Scope of_parameter(builder, parameters[i].name);
    const ValueId m = builder.state(first_moment_name(parameters[i].name), parameters[i].type);
    const ValueId v = builder.state(second_moment_name(parameters[i].name), parameters[i].type);
    const auto updated =
        adamw(builder, {weights[i], gradients[i], m, v, control, clips[static_cast<size_t>(settings.clip_group)]},
              {config.betas[0], config.betas[1], config.eps, settings.weight_decay, settings.learning_rate_scale});
    builder.store(weights[i], updated[0]);
    builder.store(m, updated[1]);
    builder.store(v, updated[2]);
  }
  return graph;
}

std::array<float, 3> adamw_control(double learning_rate, const AdamwConfig& config, int64_t t) {
  const auto steps = static_cast<double>(t);
  return {static_cast<float>(learning_rate), static_cast<float>(1 - std::pow(config.betas[0], steps)),
          static_cast<float>(1 - std::pow(config.betas[1], steps))};
}

}  // namespace ingot
