// In which form generation and evaluation keep a model's weights: as fp32, or those that products read in 8 bits
// (passes/quantize_weights.h).
#pragma once

#include <string>
#include <string_view>

#include "base/files.h"
#include "base/parallel.h"
#include "models/model.h"
#include "runtime/arena.h"

namespace ingot {

enum class WeightFormat { fp32, int8 };
// Error (usage): another name.
Result<WeightFormat> weight_format_from(std::string_view name);

// Fills the weights of an arena, in the form that each has there, from a Hugging Face directory or a checkpoint. Errors
// as load_weights, and input for a weight that is not finite where it is to be rounded.
Status load_weights_as_kept(const fs::path& directory, const Model& model, const Arena& arena, const ThreadPool& pool);

// Rounds the fp32 weights of an arena to what WeightFormat::int8 would make of them, so that a program in fp32 computes
// what one with 8-bit weights does. Errors as above.
Status round_weights_to_int8(const Model& model, const Arena& arena, const ThreadPool& pool);

}  // namespace ingot
