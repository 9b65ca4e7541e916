// A Hugging Face model directory as a run leaves it: config.json, model.safetensors, tokenizer.json,
// tokenizer_config.json, generation_config.json. The same model gives the same bytes: no time and no path is inside.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/files.h"
#include "models/model.h"
#include "runtime/arena.h"
#include "text/tokenizer.h"

namespace ingot {

// The files beside the weights, by name: what a checkpoint keeps too. tokenizer may be null.
std::vector<std::pair<std::string, std::string>> model_files(const Model& model, const Tokenizer* tokenizer);

// Writes the directory beside its place and renames it there; a directory that is there already is replaced. The
// weights are the arena's variables.
Status write_model_directory(const fs::path& directory, const Model& model, const Tokenizer* tokenizer,
                             const Arena& arena);

// Calls use(name, tensor) for each of the model's parameters, in their order, with its tensor in a Hugging Face
// directory or a checkpoint, in the dtype that it has there. A tensor that is missing, left over or of another shape is
// an error (input) that names it; an error of `use` ends the loop.
Status for_each_weight(const fs::path& path, const Model& model,
                       const std::function<Status(const std::string& name, const ConstTensorView& tensor)>& use);

// Fills what an arena has of one parameter from a tensor of its shape: itself (f32), and its copies in 16 bits.
void fill_weight(const Arena& arena, const std::string& parameter, const ConstTensorView& tensor);

// Fills those of the model's parameters that are variables (f32) of the arena, and their copies in 16 bits, from a
// Hugging Face directory or a checkpoint. Errors as above, also for tensors that are not needed.
Status load_weights(const fs::path& path, const Model& model, const Arena& arena);

// Fills them with the family's initial values.
void initialize_weights(const Model& model, uint64_t seed, const Arena& arena, const ThreadPool& pool);

}  // namespace ingot
