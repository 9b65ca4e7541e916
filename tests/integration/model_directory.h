// Model directories with random weights and a tokenizer of bytes. For tests.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
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

// The header of a safetensors file.
inline nlohmann::json safetensors_header(const fs::path& path, uint64_t& data_begin) {
  std::ifstream file(path, std::ios::binary);
  uint64_t header_bytes = 0;
  file.read(reinterpret_cast<char*>(&header_bytes), sizeof header_bytes);
  std::string header(header_bytes, ' ');
  file.read(header.data(), static_cast<std::streamsize>(header_bytes));
  data_begin = sizeof header_bytes + header_bytes;
  return nlohmann::json::parse(header);
}

inline size_t tensor_elements(const fs::path& path, const std::string& tensor) {
  uint64_t begin = 0;
  const auto offsets = safetensors_header(path, begin).at(tensor).at("data_offsets");
  return (offsets.at(1).get<size_t>() - offsets.at(0).get<size_t>()) / sizeof(float);
}

// Adds `delta` to the float at `index` of a tensor of a safetensors file, in place.
inline void change(const fs::path& path, const std::string& tensor, size_t index, float delta) {
  uint64_t begin = 0;
  const auto header = safetensors_header(path, begin);
  begin += header.at(tensor).at("data_offsets").at(0).get<uint64_t>() + index * sizeof(float);
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  float value = 0;
  file.seekg(static_cast<std::streamoff>(begin));
  file.read(reinterpret_cast<char*>(&value), sizeof value);
  value += delta;
  file.seekp(static_cast<std::streamoff>(begin));
  file.write(reinterpret_cast<const char*>(&value), sizeof value);
  ASSERT_TRUE(file.good());
}

// A real trained model, where the machine has it.
inline const fs::path kStories = fs::path(INGOT_SOURCE_DIR) / "../shared/data/stories260k";

inline bool has_stories() {
  if (fs::exists(kStories / "model.safetensors")) return true;
  std::cerr << "skipped: " << kStories << " is not there\n";
  return false;
}

}  // namespace ingot::integration
