// Why a tensor may differ from its reference: what is tried, and what is worth a look.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "models/model.h"
#include "runtime/arena.h"
#include "train/verify.h"

namespace ingot {

// Another reading of the same checkpoint that a migration often turns out to need.
struct Conjecture {
  std::string text;                                                       // "rms_norm_eps is 1e-05"
  std::string overrides;                                                  // keys of config.json; "{}": none
  std::function<void(const Model& model, const Arena& arena)> edit = {};  // of the loaded weights; may be empty
};

// Those that could change the tensor `differs` (an activation).
std::vector<Conjecture> conjectures(const Model& model, const std::string& differs);

// In words, the most likely first.
std::vector<std::string> likely_causes(const Model& model, const ReferenceTensor& tensor,
                                       const TensorComparison& comparison);

}  // namespace ingot
