// What a verification has found: the comparisons up to the first that fails, and what may explain it. Internal to
// train/.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runtime/program.h"
#include "train/verify_causes.h"
#include "train/verify_compare.h"

namespace ingot {

class Findings {
 public:
  // The reference and the options must outlive it.
  Findings(const Reference& reference, const VerifyOptions& options) : reference_(reference), options_(options) {
    result_.tolerance = options.tolerance;
  }

  bool ok() const { return result_.ok; }
  const ReferenceTensor* failed() const { return failed_; }
  Verification& result() { return result_; }

  // Keeps a comparison of the tensor's values with those that were computed; whether it holds.
  bool add(const ReferenceTensor& tensor, TensorComparison comparison, std::span<const float> expected,
           std::span<const float> found);

  // Notes the first op that makes a NaN or an infinity. Must not outlive the findings.
  NodeObserver observer();

  // The failed tensor's values by the model that a conjecture makes; nothing where there is no such model.
  using Values = std::optional<std::vector<float>>;
  using Attempt = std::function<Result<Values>(const Model& model, const Conjecture& what)>;
  // Fills the causes of the first failure: where a NaN came from, conjectures that make it agree (where `attempt` is
  // given), `notes`, what is likely.
  Status explain(const Model& model, const Attempt& attempt, std::vector<std::string> notes = {});

 private:
  const Reference& reference_;
  const VerifyOptions& options_;
  Verification result_;
  const ReferenceTensor* failed_ = nullptr;
  std::string non_finite_;
};

}  // namespace ingot
