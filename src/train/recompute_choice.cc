#include "train/recompute_choice.h"

#include <fmt/format.h>

#include <algorithm>

namespace ingot {

Result<std::vector<int64_t>> recomputed_layers(const RecomputeSection& section, int64_t layer_count) {
  std::vector<int64_t> layers = section.layers.value_or(std::vector<int64_t>());
  if (!section.layers)
    for (int64_t layer = 0; layer < layer_count; ++layer) layers.push_back(layer);
  std::ranges::sort(layers);
  layers.erase(std::ranges::unique(layers).begin(), layers.end());
  for (int64_t layer : layers)
    if (layer < 0 || layer >= layer_count)
      return usage_error("recompute.layers names layer {}, the model has {} (0 to {})", layer, layer_count,
                         layer_count - 1);
  return layers;
}

std::vector<RecomputeLevel> fixed_levels(RecomputePolicy policy, const std::vector<int64_t>& layers,
                                         int64_t layer_count) {
  INGOT_CHECK(policy != RecomputePolicy::budget, "a budget does not say by itself what is recomputed");
  std::vector<RecomputeLevel> levels(static_cast<size_t>(layer_count), RecomputeLevel::none);
  if (policy == RecomputePolicy::none) return levels;
  for (int64_t layer : layers)
    levels[static_cast<size_t>(layer)] =
        policy == RecomputePolicy::full ? RecomputeLevel::full : RecomputeLevel::selective;
  return levels;
}

std::vector<RecomputeLevel> budget_levels(int64_t step, const std::vector<int64_t>& layers, int64_t layer_count) {
  std::vector<RecomputeLevel> levels(static_cast<size_t>(layer_count), RecomputeLevel::none);
  const auto count = static_cast<int64_t>(layers.size());
  for (int64_t i = 0; i < count; ++i)
    levels[static_cast<size_t>(layers[static_cast<size_t>(i)])] = i < step - count ? RecomputeLevel::full
                                                                  : i < step       ? RecomputeLevel::selective
                                                                                   : RecomputeLevel::none;
  return levels;
}

Result<int64_t> least_step_within(int64_t budget, int64_t layers,
                                  const std::function<Result<int64_t>(int64_t step)>& needed) {
  int64_t too_large = -1, enough = 2 * layers;
  INGOT_ASSIGN(const int64_t least, needed(enough));
  if (least > budget)
    return usage_error(
        "recompute.memory_budget is {:.1f} MB, but with all of recompute.layers recomputed in full the run needs "
        "{:.1f} "
        "MB; use a smaller training.micro_batch_size, data.sequence_length or model, or a larger budget",
        static_cast<double>(budget) * 1e-6, static_cast<double>(least) * 1e-6);
  // The fixed policies first: where one of them fits, what is chosen must not be slower.
  for (int64_t step : {int64_t{0}, layers}) {
    if (step <= too_large || step >= enough) continue;
    INGOT_ASSIGN(const int64_t bytes, needed(step));
    (bytes <= budget ? enough : too_large) = step;
  }
  while (enough - too_large > 1) {
    const int64_t middle = too_large + (enough - too_large) / 2;
    INGOT_ASSIGN(const int64_t bytes, needed(middle));
    (bytes <= budget ? enough : too_large) = middle;
  }
  return enough;
}

std::string describe_levels(const std::vector<RecomputeLevel>& levels) {
  std::string text;
  const auto name = [](RecomputeLevel level) { return level == RecomputeLevel::full ? "full" : "selective"; };
  for (size_t begin = 0; begin < levels.size();) {
    size_t end = begin + 1;
    while (end < levels.size() && levels[end] == levels[begin]) ++end;
    if (levels[begin] != RecomputeLevel::none)
      text += fmt::format("{}{} in layer{} {}{}", text.empty() ? "" : ", ", name(levels[begin]),
                          end - begin > 1 ? "s" : "", begin, end - begin > 1 ? fmt::format("-{}", end - 1) : "");
    begin = end;
  }
  return text.empty() ? "nothing" : text;
}

}  // namespace ingot
