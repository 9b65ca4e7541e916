// A pass: a name and a function that rewrites a graph and says whether it changed anything. What passes are told, and
// what they tell about the fusions that they made or saw but could not make.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "autodiff/recompute.h"
#include "graph/graph.h"

namespace ingot {

// A pattern that was found at a place of the model: fused, or not and why.
struct FusionNote {
  std::string pattern;  // the fused op's name: "attention"
  std::string path;     // Node::path of the place
  bool applied = false;
  std::string reason;  // why not; empty where applied

  bool operator==(const FusionNote&) const = default;
};

// In what values are stored between ops (passes/lower_precision.h).
struct MixedPrecision {
  DType dtype = DType::f32;                // bf16 or f16: mixed precision
  std::vector<std::string> fp32_ops = {};  // kinds of ops that read fp32 all the same

  bool operator==(const MixedPrecision&) const = default;
};

struct PassContext {
  // Name patterns (base/glob.h) of fused ops ("attention") and layers ("model.layers.3.*") that stay unfused.
  std::vector<std::string> no_fuse = {};
  // Name patterns of passes that do not run.
  std::vector<std::string> disabled = {};
  // Whether run_passes verifies the graph before and after each pass.
  bool verify = kVerifyByDefault;
  // What of each layer the backward pass computes again (autodiff/recompute.h). Empty: nothing.
  std::vector<RecomputeLevel> recompute = {};
  MixedPrecision precision = {};
  std::vector<FusionNote> notes = {};

  bool may_fuse(std::string_view pattern, std::string_view path) const;
  // Each note once.
  void applied(std::string_view pattern, std::string_view path);
  void missed(std::string_view pattern, std::string_view path, std::string reason);
  // True where the pattern may be fused at the path; else notes that it was switched off.
  bool allowed(std::string_view pattern, std::string_view path);

#ifdef NDEBUG
  static constexpr bool kVerifyByDefault = false;
#else
  static constexpr bool kVerifyByDefault = true;
#endif
};

struct Pass {
  std::string_view name;
  bool (*run)(Graph& graph, PassContext& context) = nullptr;
  bool in_eager = false;  // runs in mode eager too, which takes the plain ops one by one
};

// For people: for each pattern where it was applied, and where not and why.
std::string fusion_report(std::span<const FusionNote> notes);

}  // namespace ingot
