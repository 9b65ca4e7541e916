// Model directories with random weights and a tokenizer of bytes. For tests.
#pragma once

#include <iostream>
#include <string>
#include <vector>

#include "base/files.h"
#include "text/tokenizer.h"
#include "train/model_directory.h"

namespace ingot::integration {

template <class T>
T taken(Result<T> result) {
  if (!result.ok()) throw std::runtime_error(result.error().message);
  return std::move(result).value();
}

inline constexpr const char* kByteModel =
    R"({"model_type": "gpt2", "n_embd": 24, "n_layer": 2, "n_head": 3, "n_positions": 64,
    "initializer_range": 0.3})";

// <|endoftext|>, the 256 bytes and the most frequent pairs of a few sentences.
inline Tokenizer small_tokenizer(const ThreadPool& pool) {
  const std::vector<std::string_view> documents{
      "the cat sat on the mat, and the rat sat on the cat. the end of the cat and the rat."};
  BpeTrainOptions options;
  options.vocab_size = 270;
  return taken(train_bpe(documents, options, pool));
}

inline void write_small_model(const fs::path& directory, const char* config_json) {
  const ThreadPool pool(1);
  const Tokenizer tokenizer = small_tokenizer(pool);
  ModelOptions options;
  options.vocab_size = tokenizer.vocab_size();
  const Model model = taken(Model::from_json(config_json, "test", options));
  VariableLayout variables;
  for (const ParameterSpec& parameter : model.parameters())
    variables.add(parameter.name, {DType::f32, parameter.shape});
  const Arena arena = taken(Arena::create(variables, pool));
  initialize_weights(model, 5, arena, pool);
  if (const Status written = write_model_directory(directory, model, &tokenizer, arena); !written.ok())
    throw std::runtime_error(written.error().message);
}

// A real trained model, where the machine has it.
inline const fs::path kStories = fs::path(INGOT_SOURCE_DIR) / "../shared/data/stories260k";

inline bool has_stories() {
  if (fs::exists(kStories / "model.safetensors")) return true;
  std::cerr << "skipped: " << kStories << " is not there\n";
  return false;
}

}  // namespace ingot::integration
