// LoadedModel: what a model directory says beside its weights. MODEL_DIR of every verb is a Hugging Face directory, a
// run's model/ or a checkpoint; they hold the same files.
#pragma once

#include <optional>

#include "base/files.h"
#include "models/model.h"
#include "runtime/program.h"
#include "text/tokenizer.h"

namespace ingot {

struct LoadedModel {
  fs::path directory;
  Model model;
  std::optional<Tokenizer> tokenizer;  // none where the directory has no tokenizer.json
};

// Reads configuration and tokenizer; load_weights (train/model_directory.h) fills an arena from the same directory.
// Errors (input): a file that is missing, malformed or, in a checkpoint, not as it was written.
Result<LoadedModel> open_model(const fs::path& directory);

// Its tokenizer, or an error (input) that says what to do: for verbs that cannot do without.
Result<Tokenizer> tokenizer_of(const LoadedModel& model);

}  // namespace ingot
