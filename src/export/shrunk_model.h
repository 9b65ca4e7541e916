// A directory with a shrunk model (models/shrink.h) in it.
#pragma once

#include "base/files.h"
#include "models/model.h"

namespace ingot {

// Writes `directory`, which must not be there or be empty: config.json, random weights (f32), and the files of the
// tokenizer beside `source`'s configuration, byte for byte. Whole under its name or not at all. Errors: usage where the
// place is taken or memory does not hold the weights, input and failed for what is read and written.
Status write_shrunk_model(const Model& model, const fs::path& source, const fs::path& directory, uint64_t seed);

}  // namespace ingot
