#include "infer/loaded_model.h"

#include "checkpoint/reader.h"

namespace ingot {
namespace {

constexpr const char* kConfig = "config.json";
constexpr const char* kTokenizer = "tokenizer.json";

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

// Every byte, as the checkpoint's manifest knows it.
Status check_checkpoint(const fs::path& directory) {
  INGOT_ASSIGN(const VerifyReport report, verify_checkpoint(directory));
  if (report.damaged.empty()) return {};
  return input_error("the checkpoint {} is damaged: {}", directory.string(), report.to_string());
}

}  // namespace

Result<LoadedModel> open_model(const fs::path& directory) {
  if (!is_there(directory))
    return input_error(
        "{}: there is no such directory; expected a Hugging Face directory, a run's model/ or a checkpoint",
        directory.string());
  if (!is_there(directory / kConfig))
    return input_error("{}: there is no {}; expected a Hugging Face directory, a run's model/ or a checkpoint",
                       directory.string(), kConfig);
  if (is_there(directory / "manifest.json")) INGOT_TRY(check_checkpoint(directory));
  const fs::path file = directory / kConfig;
  INGOT_ASSIGN(const std::string config, read_file(file));
  std::optional<Tokenizer> tokenizer;
  ModelOptions options;
  if (Tokenizer::file_in(directory)) {
    INGOT_ASSIGN(tokenizer, Tokenizer::load(directory));
    options.vocab_size = tokenizer->vocab_size();
  }
  auto model = Model::from_json(config, file.string(), options);
  if (!model.ok()) return input_error("{}", model.error().message);  // nobody typed what is in that file
  return LoadedModel{directory, std::move(*model), std::move(tokenizer)};
}

Result<Tokenizer> tokenizer_of(const LoadedModel& model) {
  if (model.tokenizer) return *model.tokenizer;
  return input_error("{}: there is no {}; put the model's tokenizer beside its weights", model.directory.string(),
                     kTokenizer);
}

}  // namespace ingot
