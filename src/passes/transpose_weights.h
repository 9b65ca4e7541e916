// Weights that products alone read as [inputs, outputs] are kept as [outputs, inputs]: then a product of a few rows
// reads each weight as one stretch of memory, which is a third faster than row by row (bench/README.md). For generation
// in fp32: not in the pipeline of training.
#pragma once

#include <string>
#include <string_view>

#include "passes/pass.h"

namespace ingot {

// What stands in the place of the parameter "w" [inputs, outputs].
inline std::string transposed_name(std::string_view parameter) {
  return std::string(parameter) + ".transposed";
}

bool transpose_weights(Graph& graph, PassContext& context);

}  // namespace ingot
