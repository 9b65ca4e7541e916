#include <unistd.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/log.h"
#include "checkpoint/model_weights.h"
#include "checkpoint/safetensors_writer.h"
#include "checkpoint/weight_source.h"
#include "export/export.h"
#include "export/narrow.h"

namespace ingot {
namespace {

constexpr const char* kConfig = "config.json";
// What a Hugging Face directory keeps beside configuration and weights.
constexpr auto kCopied =
    std::to_array<const char*>({"generation_config.json", "tokenizer.json", "tokenizer_config.json",
                                "special_tokens_map.json", "added_tokens.json", "vocab.json", "merges.txt", "vocab.txt",
                                "tokenizer.model", "spiece.model", "chat_template.jinja", "chat_template.json"});

bool is_of_an_export(const std::string& name) {
  return name == kConfig || name == "model.safetensors.index.json" ||
         (name.starts_with("model") && name.ends_with(".safetensors")) ||
         std::find(kCopied.begin(), kCopied.end(), name) != kCopied.end();
}

fs::path without_trailing_separator(const fs::path& path) {
  const fs::path normal = fs::absolute(path).lexically_normal();
  return normal.has_filename() ? normal : normal.parent_path();
}

// Names that no user has: what stands beside `place` may be theirs.
fs::path beside(fs::path place, const char* what) {
  place += fmt::format(".{}-{}", what, ::getpid());
  return place;
}

// A directory that holds what no export writes is someone's: it must not go.
Status check_place(const fs::path& source, const fs::path& out) {
  std::error_code ignored;
  if (!fs::exists(out, ignored)) return {};
  if (!fs::is_directory(out, ignored))
    return usage_error("{} is a file; expected the name of a directory", out.string());
  if (fs::equivalent(source, out, ignored))
    return usage_error("{} is the model itself; export to another directory", out.string());
  for (const auto& entry : fs::directory_iterator(out, ignored))
    if (const std::string name = entry.path().filename().string(); !is_of_an_export(name))
      return usage_error("{} holds {}, which no export writes; choose another directory, or remove it", out.string(),
                         name);
  return {};
}

// The dtype of most of the weights' bytes, once stored.
DType prevailing_dtype(const SafetensorsModel& weights, std::optional<DType> chosen) {
  if (chosen) return *chosen;
  std::map<DType, uint64_t> bytes;
  for (const SafetensorsModel::Tensor& tensor : weights.tensors())
    if (is_float(tensor.info.dtype)) bytes[tensor.info.dtype] += tensor.info.bytes;
  const auto most =
      std::max_element(bytes.begin(), bytes.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == bytes.end() ? DType::f32 : most->first;
}

const char* torch_name(DType dtype) {
  switch (dtype) {
    case DType::f16:
      return "float16";
    case DType::bf16:
      return "bfloat16";
    case DType::f64:
      return "float64";
    default:
      return "float32";
  }
}

// The configuration as it was given, with the dtype that the weights now have (newer files call the key "dtype").
Result<std::string> config_with_dtype(const WeightSource& source, const fs::path& directory, DType dtype) {
  INGOT_ASSIGN(const std::optional<std::string> text, source.read_file(kConfig));
  if (!text) return input_error("{}: there is no {}", directory.string(), kConfig);
  auto json = nlohmann::ordered_json::parse(*text, nullptr, false);
  if (!json.is_object()) return input_error("{}: expected a JSON object", (directory / kConfig).string());
  if (json.contains("dtype")) json["dtype"] = torch_name(dtype);
  if (json.contains("torch_dtype") || !json.contains("dtype")) json["torch_dtype"] = torch_name(dtype);
  return json.dump(2) + "\n";
}

std::vector<NamedTensor> tensors_of(const WeightSource& source, std::optional<DType> dtype) {
  std::vector<NamedTensor> tensors;
  for (const SafetensorsModel::Tensor& tensor : source.weights().tensors()) {
    const auto read = [&source, &tensor, dtype](const Box& box, const TensorView& out) -> Status {
      INGOT_TRY(source.read(tensor, box, out));
      if (!dtype || !is_float(out.dtype)) return {};
      const auto count = static_cast<size_t>(out.shape.elements());
      const auto lost = first_overflow(out.dtype, out.data, *dtype, count);
      return lost ? Status(overflow_error(tensor.info.name, *lost, name_of(*dtype))) : Status();
    };
    tensors.push_back({tensor.info.name, {nullptr, tensor.info.dtype, tensor.info.shape}, read});
  }
  return tensors;
}

Status write_files(const WeightSource& source, const fs::path& directory, const std::string& config,
                   const HfExportOptions& options) {
  INGOT_TRY(ingot::create_directories(directory));
  for (const char* name : kCopied) {
    INGOT_ASSIGN(const std::optional<std::string> content, source.read_file(name));
    if (content) INGOT_TRY(write_file_atomic(directory / name, *content));
  }
  INGOT_TRY(write_file_atomic(directory / kConfig, config));
  ModelWriteOptions writing;
  writing.max_shard_bytes = options.max_shard_bytes;
  writing.float_dtype = options.dtype;
  return write_model(directory, tensors_of(source, options.dtype), writing);
}

void list_files(const fs::path& directory, ExportReport& report) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(directory, ignored)) {
    report.files.push_back(entry.path().filename().string());
    report.bytes += entry.file_size(ignored);
  }
  std::sort(report.files.begin(), report.files.end());
}

}  // namespace

Result<ExportReport> export_hf(const ExportSource& model, const fs::path& out, const HfExportOptions& options) {
  const fs::path place = without_trailing_separator(out);
  INGOT_TRY(check_place(model.directory, place));
  if (const auto keys = model.model.own_keys(); !keys.empty())
    return usage_error("{}: {} is Ingot's own; Hugging Face's classes have no such model", model.directory.string(),
                       keys.front());
  INGOT_ASSIGN(const WeightSource source, WeightSource::open(model.directory));
  INGOT_TRY(match_weights(source.weights(), model.model, model.directory));
  const DType dtype = prevailing_dtype(source.weights(), options.dtype);
  INGOT_ASSIGN(const std::string config, config_with_dtype(source, model.directory, dtype));

  const fs::path fresh = beside(place, "tmp"), old = beside(place, "old");
  Status done = write_files(source, fresh, config, options);
  if (done.ok()) done = publish_directory(fresh, place, old);
  if (!done.ok()) {
    if (const Status removed = ingot::remove_all(fresh); !removed.ok()) log_warning("{}", removed.error().message);
    return done.error();
  }
  ExportReport report;
  report.dtype = name_of(dtype);
  report.tensors = source.weights().tensors().size();
  list_files(place, report);
  return report;
}

}  // namespace ingot
