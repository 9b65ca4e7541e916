// Which tensor of a Hugging Face directory, or of a checkpoint, is which parameter of a model.
#pragma once

#include <vector>

#include "checkpoint/safetensors.h"
#include "models/model.h"

namespace ingot {

// A tensor for each of model.parameters(), in their order, of the parameter's shape and a floating-point dtype; they
// are the weights' and live as long. GPT-2's names may lack "transformer.". A tied head that is there all the same, and
// masks that old versions saved, are passed over. Errors (input, beginning with `where`) name a tensor that is missing,
// left over, of another shape or of integers.
Result<std::vector<const SafetensorsModel::Tensor*>> match_weights(const SafetensorsModel& weights, const Model& model,
                                                                   const fs::path& where);

}  // namespace ingot
