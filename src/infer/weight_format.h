// In which form generation and evaluation keep a model's weights: in fp32 as its directory has them, in fp32 as
// products of a few rows read them fastest (passes/transpose_weights.h), or those that products read in 8 bits
// (passes/quantize_weights.h).
#pragma once

#include <string>
#include <string_view>

#include "base/files.h"
#include "base/parallel.h"
#include "models/model.h"
#include "passes/pass.h"
#include "runtime/arena.h"

namespace ingot {

enum class WeightFormat { fp32, transposed, int8 };
// "fp32" or "int8". Error (usage): another name.
Result<WeightFormat> weight_format_from(std::string_view name);

// What a generator had best keep where fp32 is asked for: copies in 16 bits are made of plain weights.
inline WeightFormat for_generation(WeightFormat weights, const MixedPrecision& precision) {
  return weights == WeightFormat::fp32 && precision.dtype == DType::f32 ? WeightFormat::transposed : weights;
}

// Fills the weights of an arena, in the form that each has there, from a Hugging Face directory or a checkpoint. Errors
// as load_weights, and input for a weight that is not finite where it is to be rounded.
Status load_weights_as_kept(const fs::path& directory, const Model& model, const Arena& arena, const ThreadPool& pool);

// Rounds the fp32 weights of an arena to what WeightFormat::int8 would make of them, so that a program in fp32 computes
// what one with 8-bit weights does. Errors as above.
Status round_weights_to_int8(const Model& model, const Arena& arena, const ThreadPool& pool);

}  // namespace ingot
