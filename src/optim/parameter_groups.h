// Which weight decay, learning rate scale and clipping each parameter gets.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace ingot {

// One entry of `optimizer.groups`; the first that matches a parameter's name decides.
struct ParameterGroupRule {
  std::string match = {};                   // a pattern (base/glob.h) on the Hugging Face tensor name
  std::optional<double> weight_decay = {};  // absent: the optimizer's, on tensors of two or more dimensions only
  double learning_rate_scale = 1;
  std::optional<double> max_grad_norm =
      {};  // clipped by its own norm with this limit (0: off); absent: with all the others
  bool operator==(const ParameterGroupRule&) const = default;
};

struct ParameterInfo {
  std::string name = {};
  int rank = 0;  // dimensions
};

struct ParameterSettings {
  double weight_decay = 0;
  double learning_rate_scale = 1;
  int clip_group = 0;  // index into ParameterGroups::max_grad_norms
  bool operator==(const ParameterSettings&) const = default;
};

struct ParameterGroups {
  std::vector<ParameterSettings> parameters = {};  // in the order of the parameters that were given
  std::vector<double> max_grad_norms =
      {};  // of clip group 0 (all without a limit of their own), then of each rule with one
  std::vector<std::string> warnings = {};  // rules that match nothing, or nothing that an earlier one left over
};

// Weight decay falls on tensors of rank >= 2 unless the rule that matches names one, which then holds for every rank.
ParameterGroups assign_groups(std::span<const ParameterInfo> parameters, std::span<const ParameterGroupRule> rules,
                              double weight_decay, double max_grad_norm);

}  // namespace ingot
