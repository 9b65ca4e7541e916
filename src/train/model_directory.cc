#include "train/model_directory.h"

#include <nlohmann/json.hpp>

#include "checkpoint/convert.h"
#include "checkpoint/model_weights.h"
#include "checkpoint/reader.h"
#include "checkpoint/safetensors_writer.h"
#include "kernels/layout/layout.h"
#include "passes/lower_precision.h"

namespace ingot {
namespace {

using Json = nlohmann::ordered_json;

Json token_entry(const Tokenizer& tokenizer, const std::optional<TokenId>& id) {
  return id ? Json(tokenizer.token_text(*id)) : Json(nullptr);
}

std::string tokenizer_config(const Model& model, const Tokenizer& tokenizer) {
  Json json;
  json["tokenizer_class"] = "PreTrainedTokenizerFast";
  json["bos_token"] = token_entry(tokenizer, tokenizer.bos_id());
  json["eos_token"] = token_entry(tokenizer, tokenizer.eos_id());
  json["model_max_length"] = model.config().max_position_embeddings;
  json["clean_up_tokenization_spaces"] = false;
  return json.dump(2) + "\n";
}

std::string generation_config(const Tokenizer* tokenizer) {
  Json json;
  json["_from_model_config"] = true;
  if (tokenizer != nullptr && tokenizer->bos_id()) json["bos_token_id"] = *tokenizer->bos_id();
  if (tokenizer != nullptr && tokenizer->eos_id()) json["eos_token_id"] = *tokenizer->eos_id();
  return json.dump(2) + "\n";
}

// The resolved configuration with the token ids of the tokenizer that the model was trained with.
std::string config_json(const Model& model, const Tokenizer* tokenizer) {
  Json json = Json::parse(model.to_config_json());
  if (tokenizer != nullptr && tokenizer->bos_id()) json["bos_token_id"] = *tokenizer->bos_id();
  if (tokenizer != nullptr && tokenizer->eos_id()) json["eos_token_id"] = *tokenizer->eos_id();
  json["torch_dtype"] = "float32";
  return json.dump(2) + "\n";
}

Status write_model_files(const fs::path& directory, const Model& model, const Tokenizer* tokenizer,
                         const Arena& arena) {
  for (const auto& [name, content] : model_files(model, tokenizer))
    INGOT_TRY(write_file_atomic(directory / name, content));
  std::vector<NamedTensor> tensors;
  for (const ParameterSpec& parameter : model.parameters())
    tensors.push_back({parameter.name, arena.variable(parameter.name)});
  return write_model(directory, std::move(tensors));
}

}  // namespace

std::vector<std::pair<std::string, std::string>> model_files(const Model& model, const Tokenizer* tokenizer) {
  std::vector<std::pair<std::string, std::string>> files{{"config.json", config_json(model, tokenizer)},
                                                         {"generation_config.json", generation_config(tokenizer)}};
  if (tokenizer != nullptr) {
    files.emplace_back(tokenizer->file_name(), tokenizer->to_file());
    files.emplace_back("tokenizer_config.json", tokenizer_config(model, *tokenizer));
  }
  return files;
}

Status write_model_directory(const fs::path& directory, const Model& model, const Tokenizer* tokenizer,
                             const Arena& arena) {
  fs::path fresh = directory, old = directory;
  fresh += ".tmp";
  old += ".old";
  for (const fs::path& left_over : {fresh, old}) INGOT_TRY(ingot::remove_all(left_over));
  INGOT_TRY(ingot::create_directories(fresh));
  Status written = write_model_files(fresh, model, tokenizer, arena);
  if (written.ok()) written = publish_directory(fresh, directory, old);
  if (!written.ok()) (void)ingot::remove_all(fresh);  // the first failure is the one to tell
  return written;
}

Status for_each_weight(const fs::path& path, const Model& model,
                       const std::function<Status(const std::string& name, const ConstTensorView& tensor)>& use) {
  INGOT_ASSIGN(const SafetensorsModel weights, open_weights(path));
  INGOT_ASSIGN(const auto tensors, match_weights(weights, model, path));
  for (size_t i = 0; i < tensors.size(); ++i)
    INGOT_TRY(use(model.parameters()[i].name, SafetensorsModel::view(*tensors[i])));
  return {};
}

void fill_weight(const Arena& arena, const std::string& parameter, const ConstTensorView& tensor) {
  const auto has = [&](const std::string& variable) { return arena.variables().find(variable) != nullptr; };
  std::vector<float> alone;  // where copies are all that the arena has of it
  std::span<float> wide;
  if (has(parameter)) convert_to_f32(tensor, wide = arena.variable(parameter).span<float>());
  for (const DType dtype : {DType::bf16, DType::f16}) {
    const std::string copy = weight_copy_name(dtype, parameter);
    if (!has(copy)) continue;
    if (wide.empty()) {
      alone.resize(static_cast<size_t>(tensor.shape.elements()));
      convert_to_f32(tensor, wide = alone);
    }
    kernels::cast(wide.data(), DType::f32, arena.variable(copy).data, dtype, tensor.shape.elements());
  }
}

Status load_weights(const fs::path& path, const Model& model, const Arena& arena) {
  return for_each_weight(path, model, [&](const std::string& name, const ConstTensorView& tensor) {
    fill_weight(arena, name, tensor);
    return Status();
  });
}

void initialize_weights(const Model& model, uint64_t seed, const Arena& arena, const ThreadPool& pool) {
  constexpr int64_t kGrain = 1 << 16;
  for (const ParameterSpec& parameter : model.parameters()) {
    float* out = arena.variable(parameter.name).as<float>();
    const int64_t elements = parameter.shape.elements();
    pool.run((elements + kGrain - 1) / kGrain, [&](int64_t tile, int) {
      const int64_t begin = tile * kGrain, end = std::min(elements, begin + kGrain);
      initialize(parameter, seed, begin, end, out + begin);
    });
  }
}

}  // namespace ingot
