// The update program: norms, clipping and the optimizer, for all trained parameters at once. Variables: NAME (the
// parameter), gradient_name(NAME), and the optimizer's moments.
#pragma once

#include <array>
#include <span>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "optim/parameter_groups.h"

namespace ingot {

struct TrainedParameter {
  std::string name;
  Type type;
};

struct AdamwConfig {
  std::array<double, 2> betas = {0.9, 0.95};
  double eps = 1e-8;
};

std::string gradient_name(const std::string& parameter);       // "grad.NAME"
std::string first_moment_name(const std::string& parameter);   // "adam_m.NAME"
std::string second_moment_name(const std::string& parameter);  // "adam_v.NAME"

// Input "control" f32[3] {learning rate, 1 - beta1^t, 1 - beta2^t} with t the number of updates that were made, this
// one included. Output "clip" f32[3] {scale, skip, norm} of the norm over all parameters together; where a gradient is
// not finite skip is 1 and nothing changes. groups.parameters is in the order of `parameters`.
Graph update_graph(std::span<const TrainedParameter> parameters, const ParameterGroups& groups,
                   const AdamwConfig& config);

// The content of "control" for the t-th update (1 at the first).
std::array<float, 3> adamw_control(double learning_rate, const AdamwConfig& config, int64_t t);

}  // namespace ingot
