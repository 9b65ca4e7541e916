// The part of the update program that belongs to one parameter.
#pragma once

#include <vector>

#include "graph/builder.h"
#include "optim/optimizer_state.h"
#include "optim/parameter_groups.h"

namespace ingot {

// The values that an update reads: the parameter, its gradient, its state in the order of optimizer_state, and what
// update_graph has for all parameters and for this one's clip group.
struct UpdateInputs {
  ValueId param, grad;
  std::vector<ValueId> state;
  ValueId control, clip;
};

// Adds the nodes of the optimizer's step and stores what they give into the parameter and its state.
void add_parameter_update(Builder& builder, const UpdateInputs& inputs, const ParameterSettings& settings,
                          const OptimizerConfig& config, const TrainedParameter& parameter);

}  // namespace ingot
