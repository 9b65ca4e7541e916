#include "passes/pipeline.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "base/glob.h"
#include "graph/text.h"
#include "passes/cse.h"
#include "passes/dce.h"
#include "passes/fold.h"
#include "passes/fuse_accumulate.h"
#include "passes/fuse_attention.h"
#include "passes/fuse_cast.h"
#include "passes/fuse_elementwise.h"
#include "passes/fuse_epilogue.h"
#include "passes/fuse_glu.h"
#include "passes/fuse_linear_cross_entropy.h"
#include "passes/fuse_residual_norm.h"
#include "passes/fuse_shared_input.h"
#include "passes/lower_precision.h"
#include "passes/merge_loss.h"
#include "passes/pack_attention.h"

namespace ingot {

std::span<const Pass> forward_passes() {
  static constexpr auto kPasses = std::to_array<Pass>({
      {"fold", fold},
      {"cse", cse},
      {"dce", dce},
      {"fuse_attention", fuse_attention},
      {"fuse_shared_input", fuse_shared_input},
      {"pack_attention", pack_attention},
      {"fuse_glu", fuse_glu},
      {"fuse_linear_cross_entropy", fuse_linear_cross_entropy},
      {"fold_fused", fold},
      {"dce_fused", dce},
  });
  return kPasses;
}

namespace {

bool recompute_layers(Graph& graph, PassContext& context) {
  const ValueId loss = graph.find_output("loss");
  return loss != kNone && recompute(graph, loss, context.recompute) > 0;
}

}  // namespace

std::span<const Pass> backward_passes() {
  static constexpr auto kPasses = std::to_array<Pass>({
      {"fold_gradients", fold},
      {"cse_gradients", cse},
      {"dce_gradients", dce},
      {"merge_loss", merge_loss},
      {"lower_precision", lower_precision, true},
      {"recompute", recompute_layers},  // no pass that comes later may take a node and its copy for one
      {"fuse_accumulate", fuse_accumulate},
      {"fuse_residual_norm", fuse_residual_norm},
      {"fuse_epilogue", fuse_epilogue},
      {"fuse_cast", fuse_cast},
      {"fuse_elementwise", fuse_elementwise},
      {"dce_clusters", dce},
  });
  return kPasses;
}

std::vector<Pass> passes_of_mode(std::span<const Pass> passes, bool eager) {
  std::vector<Pass> chosen(passes.begin(), passes.end());
  if (eager) std::erase_if(chosen, [](const Pass& pass) { return !pass.in_eager; });
  return chosen;
}

Status run_passes(Graph& graph, std::span<const Pass> passes, PassContext& context,
                  const std::function<void(const Pass& pass, const Graph& graph)>& after) {
  if (context.verify) INGOT_TRY(verify_graph(graph));
  for (const Pass& pass : passes) {
    const bool disabled =
        std::ranges::any_of(context.disabled, [&](const std::string& glob) { return glob_match(glob, pass.name); });
    if (disabled) continue;
    pass.run(graph, context);
    if (context.verify)
      if (const Status status = verify_graph(graph); !status.ok())
        return failed_error("the pass {} left the graph malformed: {}", pass.name, status.error().message);
    if (after) after(pass, graph);
  }
  return {};
}

Status check_pass_names(std::span<const std::string> patterns) {
  std::vector<std::string_view> names;
  for (const auto passes : {forward_passes(), backward_passes()})
    for (const Pass& pass : passes) names.push_back(pass.name);
  for (const std::string& pattern : patterns)
    if (std::ranges::none_of(names, [&](std::string_view name) { return glob_match(pattern, name); }))
      return usage_error("compile.disable_passes: no pass is named \"{}\"; there are {}", pattern,
                         fmt::join(names, ", "));
  return {};
}

}  // namespace ingot
