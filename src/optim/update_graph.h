// The update program: norms, clipping and the optimizer, for all trained parameters at once. Variables: NAME (the
// parameter), gradient_name(NAME), and the optimizer's state.
#pragma once

#include <span>
#include <string>

#include "graph/graph.h"
#include "optim/optimizer_state.h"
#include "optim/parameter_groups.h"

namespace ingot {

std::string gradient_name(const std::string& parameter);  // "grad.NAME"

// Input "control" f32[3] as update_control gives it. Output "clip" f32[3] {scale, skip, norm} of the norm over all
// parameters together; where a gradient is not finite skip is 1 and nothing changes. groups.parameters is in the order
// of `parameters`.
Graph update_graph(std::span<const TrainedParameter> parameters, const ParameterGroups& groups,
                   const OptimizerConfig& config);

}  // namespace ingot
