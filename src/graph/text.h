// The IR as text, for people and for pass tests. Printing a graph and parsing the text gives the same graph
// (compacted):
//
//   graph "train"
//   %0 = parameter "wte.weight" : f32[512,64]
//   %1 = input "input_ids" : i32[2,8]
//   %2 = embedding(%0, %1) : f32[2,8,64] @"embed"
//   %3, %4 = split(%2) {axis=2} : f32[2,8,32], f32[2,8,32] @"h.0"
//   output "logits" = %3
//   store %0 = %2
//
// Lines that are empty or start with # are skipped.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "graph/op.h"

namespace ingot {

std::string print_graph(const Graph& graph);

// Types are checked against the ops' own rules. Errors name the line (ErrorKind::input).
Result<Graph> parse_graph(std::string_view text, const OpLookup& lookup);

// Whether the graph is well formed: ids in range, producers agree, types are what the ops infer, it can be scheduled,
// variables and stores agree. Passes run between two calls of it in tests.
Status verify_graph(const Graph& graph);

}  // namespace ingot
