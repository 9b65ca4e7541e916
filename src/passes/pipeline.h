// The pipeline: every pass in the order in which it runs. Forward passes see the model before it is sharded and
// differentiated, backward passes the whole step.
#pragma once

#include <functional>

#include "base/result.h"
#include "passes/pass.h"

namespace ingot {

std::span<const Pass> forward_passes();
std::span<const Pass> backward_passes();

// Those that run in a mode: eager takes the plain ops one by one, rounded where graph mode rounds them.
std::vector<Pass> passes_of_mode(std::span<const Pass> passes, bool eager);

// Runs those that are not disabled; `after` (may be empty) sees the graph after each. An error names the pass that left
// the graph malformed (only where context.verify).
Status run_passes(Graph& graph, std::span<const Pass> passes, PassContext& context,
                  const std::function<void(const Pass& pass, const Graph& graph)>& after = {});

// An error for a name pattern that matches no pass: what a configuration's disable_passes is checked with.
Status check_pass_names(std::span<const std::string> patterns);

}  // namespace ingot
