// Models of random weights that are the same on every machine, for comparisons with other engines on results that are
// stored.
#pragma once

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/rng.h"
#include "checkpoint/safetensors_writer.h"
#include "models/model.h"

namespace ingot {

// Uniform numbers from the words of Philox, without a function of the mathematical library: of a matrix with the
// deviation that the configuration gives it, of a vector (biases, norms) 0.2 around the value that it starts from.
inline std::vector<float> random_values(const ParameterSpec& parameter, uint64_t seed) {
  std::vector<float> values(static_cast<size_t>(parameter.shape.elements()));
  const bool is_matrix = parameter.shape.rank() > 1;
  const auto reach = static_cast<float>(is_matrix ? parameter.std * 1.75 : 0.2);
  const float middle = parameter.init == InitKind::ones ? 1.0f : 0.0f;
  const uint64_t key = stream_key(seed, parameter.name);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = middle + reach * (uniform_from_bits(philox(key, i)[0]) * 2.0f - 1.0f);
  return values;
}

// config.json and model.safetensors.
inline Status write_random_model(const fs::path& directory, const std::string& config_json, uint64_t seed) {
  INGOT_ASSIGN(const Model model, Model::from_json(config_json, "the random model"));
  std::vector<std::vector<float>> values;
  std::vector<NamedTensor> tensors;
  for (const ParameterSpec& parameter : model.parameters()) {
    values.push_back(random_values(parameter, seed));
    const auto* data = reinterpret_cast<const std::byte*>(values.back().data());
    tensors.push_back({parameter.name, {data, DType::f32, parameter.shape}});
  }
  INGOT_TRY(write_model(directory, tensors));
  return write_file_atomic(directory / "config.json", model.to_config_json());
}

}  // namespace ingot
