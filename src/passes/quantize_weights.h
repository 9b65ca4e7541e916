// Weights that products read go over to 8 bits (ops/quantized_linear.h), and with them the embedding that shares its
// table with the head. Biases, norms, positions and an embedding of its own stay as they are. For generation: not in
// the pipeline of training.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "passes/pass.h"

namespace ingot {

inline constexpr int64_t kQuantizedGroup = 64;  // inputs that share a scale

// What stands in the place of the parameter "w": "w.int8" (or "w.int8.transposed", where w is [inputs, outputs]) and
// "w.int8.scales".
struct QuantizedName {
  std::string parameter;
  bool transposed = false;

  std::string values() const { return parameter + (transposed ? ".int8.transposed" : ".int8"); }
  std::string scales() const { return parameter + ".int8.scales"; }
};
// What the name of a quantized weight's values says; nothing for other names.
std::optional<QuantizedName> parse_quantized_name(std::string_view variable);

bool quantize_weights(Graph& graph, PassContext& context);

}  // namespace ingot
