#include "export/export_directory.h"

#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "base/log.h"
#include "export/copied_files.h"

namespace ingot {
namespace {

constexpr const char* kConfig = "config.json";

bool is_of_an_export(const std::string& name) {
  return name == kConfig || name == "model.safetensors.index.json" || name == "model.onnx" ||
         name == "model.onnx.data" || (name.starts_with("model") && name.ends_with(".safetensors")) ||
         std::ranges::find(copied_files(), name) != copied_files().end();
}

// Names that no user has: what stands beside `place` may be theirs.
fs::path beside(fs::path place, const char* what) {
  place += fmt::format(".{}-{}", what, ::getpid());
  return place;
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
  auto json = parse_json<nlohmann::ordered_json>(*text);
  if (!json.is_object()) return input_error("{}: expected a JSON object", (directory / kConfig).string());
  if (json.contains("dtype")) json["dtype"] = torch_name(dtype);
  if (json.contains("torch_dtype") || !json.contains("dtype")) json["torch_dtype"] = torch_name(dtype);
  return json.dump(2) + "\n";
}

Status write_files(const WeightSource& source, const fs::path& directory, const std::string& config,
                   const std::function<Status(const fs::path& directory)>& write_weights) {
  for (const char* name : copied_files()) {
    INGOT_ASSIGN(const std::optional<std::string> content, source.read_file(name));
    if (content) INGOT_TRY(write_file_atomic(directory / name, *content));
  }
  INGOT_TRY(write_file_atomic(directory / kConfig, config));
  return write_weights(directory);
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

fs::path without_trailing_separator(const fs::path& path) {
  const fs::path normal = fs::absolute(path).lexically_normal();
  return normal.has_filename() ? normal : normal.parent_path();
}

Status check_out_file(const fs::path& out) {
  std::error_code ignored;
  if (!fs::exists(out, ignored) || !is_of_an_export(out.filename().string())) return {};
  return usage_error("{} is a file of a model; choose another name", out.string());
}

// A directory that holds what no export writes is someone's: it must not go.
Status check_export_place(const fs::path& model, const fs::path& out) {
  const fs::path place = without_trailing_separator(out);
  std::error_code ignored;
  if (!fs::exists(place, ignored)) return {};
  if (!fs::is_directory(place, ignored))
    return usage_error("{} is a file; expected the name of a directory", place.string());
  if (fs::equivalent(model, place, ignored))
    return usage_error("{} is the model itself; export to another directory", place.string());
  for (const auto& entry : fs::directory_iterator(place, ignored))
    if (const std::string name = entry.path().filename().string(); !is_of_an_export(name))
      return usage_error("{} holds {}, which no export writes; choose another directory, or remove it", place.string(),
                         name);
  return {};
}

Status build_directory(const fs::path& out, const std::function<Status(const fs::path& directory)>& write) {
  const fs::path place = without_trailing_separator(out);
  const fs::path fresh = beside(place, "tmp"), old = beside(place, "old");
  Status done = ingot::create_directories(fresh);
  if (done.ok()) done = write(fresh);
  if (done.ok()) done = publish_directory(fresh, place, old);
  if (done.ok()) return {};
  if (const Status removed = ingot::remove_all(fresh); !removed.ok()) log_warning("{}", removed.error().message);
  return done;
}

Result<ExportReport> write_export(const WeightSource& source, const fs::path& model, const fs::path& out, DType dtype,
                                  const std::function<Status(const fs::path& directory)>& write_weights) {
  INGOT_ASSIGN(const std::string config, config_with_dtype(source, model, dtype));
  INGOT_TRY(build_directory(
      out, [&](const fs::path& directory) { return write_files(source, directory, config, write_weights); }));
  ExportReport report;
  report.dtype = name_of(dtype);
  list_files(out, report);
  return report;
}

}  // namespace ingot
