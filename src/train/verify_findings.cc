#include "train/verify_findings.h"

#include <iterator>

#include "train/debug_dump.h"

namespace ingot {

bool Findings::add(const ReferenceTensor& tensor, TensorComparison comparison, std::span<const float> expected,
                   std::span<const float> found) {
  if (!comparison.ok && tensor.stage == ReferenceStage::activation)
    comparison.first_position = first_position(expected, found, comparison.limit, reference_.batch());
  result_.ok = comparison.ok;
  if (!comparison.ok) {
    result_.first_failure = tensor.name;
    failed_ = &tensor;
  }
  result_.tensors.push_back(std::move(comparison));
  return result_.ok;
}

NodeObserver Findings::observer() {
  return {[this](const NodeEvent& event) -> Status {
    if (non_finite_.empty()) non_finite_ = describe_non_finite(event);
    return {};
  }};
}

Status Findings::explain(const Model& model, const Attempt& attempt, std::vector<std::string> notes) {
  std::vector<std::string>& causes = result_.causes;
  if (!non_finite_.empty()) causes.push_back("the first NaN or infinity came from " + non_finite_);
  if (attempt)
    for (const Conjecture& conjecture : conjectures(model, failed_->source)) {
      const auto changed = model.with_overrides(conjecture.overrides, "conjecture");
      if (!changed.ok()) continue;  // the family has no such key, or not together with the others
      INGOT_ASSIGN(const auto found, attempt(*changed, conjecture));
      if (found && compare(*failed_, reference_.values(*failed_), *found, options_.tolerance).ok)
        causes.push_back(fmt::format("{} agrees if {}", failed_->name, conjecture.text));
    }
  std::ranges::move(notes, std::back_inserter(causes));
  std::ranges::move(likely_causes(model, *failed_, result_.tensors.back()), std::back_inserter(causes));
  return {};
}

}  // namespace ingot
