#include "optim/parameter_groups.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/glob.h"

namespace ingot {
namespace {

std::string unused_rule_warning(size_t index, const ParameterGroupRule& rule,
                                std::span<const ParameterInfo> parameters) {
  const auto matched = std::find_if(parameters.begin(), parameters.end(),
                                    [&](const ParameterInfo& info) { return glob_match(rule.match, info.name); });
  if (matched == parameters.end())
    return fmt::format("optimizer.groups.{}: no parameter matches '{}'; names look like '{}'", index, rule.match,
                       parameters.empty() ? "" : parameters.front().name);
  return fmt::format("optimizer.groups.{}: every parameter that '{}' matches ('{}', …) belongs to an earlier group",
                     index, rule.match, matched->name);
}

}  // namespace

ParameterGroups assign_groups(std::span<const ParameterInfo> parameters, std::span<const ParameterGroupRule> rules,
                              double weight_decay, double max_grad_norm) {
  ParameterGroups groups;
  groups.max_grad_norms = {max_grad_norm};
  std::vector<int> clip_group(rules.size(), 0);
  for (size_t i = 0; i < rules.size(); ++i) {
    if (!rules[i].max_grad_norm) continue;
    clip_group[i] = static_cast<int>(groups.max_grad_norms.size());
    groups.max_grad_norms.push_back(*rules[i].max_grad_norm);
  }
  std::vector<bool> used(rules.size(), false);
  for (const ParameterInfo& info : parameters) {
    ParameterSettings settings{.weight_decay = info.rank >= 2 ? weight_decay : 0};
    const auto rule = std::find_if(rules.begin(), rules.end(),
                                   [&](const ParameterGroupRule& r) { return glob_match(r.match, info.name); });
    if (rule != rules.end()) {
      const auto index = static_cast<size_t>(rule - rules.begin());
      used[index] = true;
      settings.weight_decay = rule->weight_decay.value_or(settings.weight_decay);
      settings.learning_rate_scale = rule->learning_rate_scale;
      settings.clip_group = clip_group[index];
    }
    groups.parameters.push_back(settings);
  }
  for (size_t i = 0; i < rules.size(); ++i)
    if (!used[i]) groups.warnings.push_back(unused_rule_warning(i, rules[i], parameters));
  return groups;
}

}  // namespace ingot
