// Ingot's logits after every token of some sequences, as generation computes them, for oracles to compare with.
//   sequence_logits MODEL_DIR IDS.json OUT
// IDS.json is a list of lists of ids; OUT gets, for each token of each sequence, vocab_size numbers in f32.
#include <cstdio>
#include <nlohmann/json.hpp>

#include "infer/generator.h"
#include "train/model_directory.h"

namespace ingot {
namespace {

Result<std::vector<std::vector<int32_t>>> read_sequences(const fs::path& path) {
  INGOT_ASSIGN(const std::string text, read_file(path));
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_array()) return input_error("{}: expected a list of lists of ids", path.string());
  return json.get<std::vector<std::vector<int32_t>>>();
}

Status write_logits(const fs::path& directory, const fs::path& ids, const fs::path& out) {
  INGOT_ASSIGN(const LoadedModel model, open_model(directory));
  INGOT_ASSIGN(const auto sequences, read_sequences(ids));
  size_t longest = 1;
  for (const auto& sequence : sequences) longest = std::max(longest, sequence.size());
  const ThreadPool pool(1);
  INGOT_ASSIGN(auto generator, Generator::create(model.model, {.tokens = static_cast<int64_t>(longest)}, pool));
  INGOT_TRY(load_weights(directory, model.model, generator->arena()));
  INGOT_ASSIGN(AtomicFile file, AtomicFile::create(out));
  for (const auto& sequence : sequences) {
    generator->clear();
    for (const int32_t id : sequence) {
      INGOT_ASSIGN(const auto logits, generator->feed({&id, 1}));
      INGOT_TRY(file.write(std::as_bytes(logits)));
    }
  }
  return file.publish();
}

}  // namespace
}  // namespace ingot

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: sequence_logits MODEL_DIR IDS.json OUT\n");
    return 2;
  }
  const auto done = ingot::write_logits(argv[1], argv[2], argv[3]);
  if (done.ok()) return 0;
  std::fprintf(stderr, "sequence_logits: %s\n", done.error().message.c_str());
  return static_cast<int>(done.error().kind);
}
