#include "export/shrunk_model.h"

#include <nlohmann/json.hpp>

#include "base/system.h"
#include "checkpoint/safetensors_writer.h"
#include "export/copied_files.h"
#include "export/export_directory.h"
#include "models/shrink.h"

namespace ingot {
namespace {

Status check_place(const fs::path& directory) {
  std::error_code ignored;
  if (!fs::exists(directory, ignored)) return {};
  if (fs::is_directory(directory, ignored) && fs::is_empty(directory, ignored)) return {};
  return usage_error("{} is there already; choose another name, or remove it", directory.string());
}

Status write_weights(const Model& model, const fs::path& directory, uint64_t seed) {
  const auto needed = static_cast<uint64_t>(model.parameter_count()) * sizeof(float);
  if (const uint64_t available = available_memory(); needed > available)
    return usage_error("the smaller model's weights need {} MB, {} MB are available; choose a smaller width",
                       needed >> 20, available >> 20);
  std::vector<std::vector<float>> values;
  std::vector<NamedTensor> tensors;
  for (const ParameterSpec& parameter : model.parameters()) {
    values.emplace_back(static_cast<size_t>(parameter.shape.elements()));
    initialize_shrunk(model, parameter, seed, values.back().data());
    tensors.push_back(
        {parameter.name, {reinterpret_cast<const std::byte*>(values.back().data()), DType::f32, parameter.shape}});
  }
  return write_model(directory, std::move(tensors));
}

Status write_files(const Model& model, const fs::path& source, const fs::path& directory, uint64_t seed) {
  for (const char* name : copied_files()) {
    std::error_code ignored;
    if (!fs::exists(source / name, ignored)) continue;
    INGOT_ASSIGN(const std::string content, read_file(source / name));
    INGOT_TRY(write_file_atomic(directory / name, content));
  }
  auto config = nlohmann::ordered_json::parse(model.to_config_json());
  for (const char* key : {"dtype", "torch_dtype"})
    if (config.contains(key) || key == std::string_view("torch_dtype")) config[key] = "float32";
  INGOT_TRY(write_file_atomic(directory / "config.json", config.dump(2) + "\n"));
  return write_weights(model, directory, seed);
}

}  // namespace

Status write_shrunk_model(const Model& model, const fs::path& source, const fs::path& directory, uint64_t seed) {
  INGOT_TRY(check_place(without_trailing_separator(directory)));
  return build_directory(directory, [&](const fs::path& fresh) { return write_files(model, source, fresh, seed); });
}

}  // namespace ingot
