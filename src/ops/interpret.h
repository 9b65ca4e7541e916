// The reference evaluator: runs a graph node by node in double precision. Slow and simple; what every pass, kernel and
// gradient is tested against.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "graph/op.h"

namespace ingot {

// All of the graph's values after a run, by ValueId; sources are taken from `sources` by name (missing: BugError).
std::vector<RefTensor> interpret(const Graph& graph, const std::map<std::string, RefTensor>& sources,
                                 const RandomState& random = {});

// Outputs by name, and stored variables under their source's name.
std::map<std::string, RefTensor> interpret_results(const Graph& graph, const std::map<std::string, RefTensor>& sources,
                                                   const RandomState& random = {});

// One op's outputs by its reference evaluation, without a graph of the caller's.
std::vector<RefTensor> evaluate_op(const OpDef& op, const Attributes& attributes, std::span<const Type> input_types,
                                   std::span<const RefTensor> inputs, const RandomState& random = {});

}  // namespace ingot
