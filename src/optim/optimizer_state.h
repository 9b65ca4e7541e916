// What an optimizer keeps from step to step.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "optim/optimizer.h"

namespace ingot {

struct TrainedParameter {
  std::string name;
  Type type;
  // A matrix inside the model, neither an embedding nor the head: what muon orthogonalizes. Others get its AdamW.
  bool is_hidden_matrix = false;
};

// One tensor that the optimizer keeps for a parameter. All are zero before the first update.
struct OptimizerState {
  std::string parameter;
  std::string kind;  // "adam_m": also the kind of the checkpoint's pieces
  Type type;
  std::string variable() const { return kind + "." + parameter; }
};

// adamw_8bit keeps the moments of parameters with fewer elements than this in fp32.
inline constexpr int64_t kLeastQuantized = 4096;
bool is_quantized(const TrainedParameter& parameter, const OptimizerConfig& config);

// What the optimizer keeps for one parameter, or for all in their order.
std::vector<OptimizerState> optimizer_state(const TrainedParameter& parameter, const OptimizerConfig& config);
std::vector<OptimizerState> optimizer_state(std::span<const TrainedParameter> parameters,
                                            const OptimizerConfig& config);

}  // namespace ingot
