// The update program: norms, clipping and the optimizer, for all trained parameters at once. Variables: NAME (the
// parameter), gradient_name(NAME), and the optimizer's state.
#pragma once

#include <span>
#include <string>

#include "graph/graph.h"
#include "optim/optimizer_state.h"
#include "optim/parameter_groups.h"
#include "optim/weight_copies.h"

namespace ingot {

std::string gradient_name(const std::string& parameter);  // "grad.NAME"

// Inputs "control" f32[3] as update_control gives it, and "gradient_scale" f32[]: how many times too large the
// gradients in their variables are (the loss scale; 1 without one). Output "clip" f32[3] {scale, skip, norm} of the
// norm over all parameters together, that of the true gradients; where a gradient, or a sum of squares, is not finite
// skip is 1 and nothing changes. groups.parameters is in the order of `parameters`. Those of `copies` are made anew
// from the updated parameters.
Graph update_graph(std::span<const TrainedParameter> parameters, const ParameterGroups& groups,
                   const OptimizerConfig& config, std::span<const WeightCopy> copies = {});

}  // namespace ingot
