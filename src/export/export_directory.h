// What exports to a directory share: where they may stand, the files beside the weights, and that they appear whole or
// not at all.
#pragma once

#include <functional>

#include "checkpoint/weight_source.h"
#include "export/export.h"

namespace ingot {

// An absolute path whose last part is a name.
fs::path without_trailing_separator(const fs::path& path);

// Whether the directory `out` may be written: it is not there, is empty, or holds what an export writes alone. Error:
// usage.
Status check_export_place(const fs::path& model, const fs::path& out);

// Error (usage) where a file stands at `out` that belongs to a model directory: a result must not replace it.
Status check_out_file(const fs::path& out);

// Makes the directory `out` of what `write` puts into a directory: built beside its place, then renamed; what stood
// there goes. Nothing is left behind where it fails.
Status build_directory(const fs::path& out, const std::function<Status(const fs::path& directory)>& write);

// Makes the directory `out` of config.json (as `model` has it, with the dtype that the weights now have), the
// tokenizer's files and what `write_weights` puts there, by build_directory(). The report lacks the number of tensors.
// Errors: input for what is read, failed for what is written, and write_weights'.
Result<ExportReport> write_export(const WeightSource& source, const fs::path& model, const fs::path& out, DType dtype,
                                  const std::function<Status(const fs::path& directory)>& write_weights);

}  // namespace ingot
