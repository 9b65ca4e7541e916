// Writing a model for other engines: a Hugging Face directory, a GGUF file or an ONNX graph. Tensors go through part by
// part, so a model may be larger than memory. What is written appears whole under its name or not at all.
#pragma once

#include <optional>

#include "base/files.h"
#include "export/gguf_file.h"
#include "models/model.h"
#include "text/tokenizer.h"

namespace ingot {

// A model as it is in its directory: Hugging Face's, or a checkpoint.
struct ExportSource {
  fs::path directory;
  const Model& model;
  const Tokenizer* tokenizer = nullptr;  // none where the directory has none
};

struct ExportReport {
  std::vector<std::string> files;  // that were written; names within a directory
  std::string dtype;               // of most weights
  size_t tensors = 0;
  uint64_t bytes = 0;  // of all files
};

struct HfExportOptions {
  std::optional<DType> dtype;                // f32, f16 or bf16 for all floats; none: each as it is
  uint64_t max_shard_bytes = 5'000'000'000;  // of tensor data; a larger tensor has a shard of its own
};

// Writes the directory `out`: the tensors under their names (the same bytes where the dtype stays; integers always
// do), config.json with its torch_dtype, the tokenizer's files. A directory of an earlier export is replaced, one that
// holds anything else is left alone. Errors: usage where the model or the place cannot be, input for what is read,
// failed for what is written and for numbers that `dtype` cannot hold.
Result<ExportReport> export_hf(const ExportSource& source, const fs::path& out, const HfExportOptions& options);

// Writes the file `out` for llama.cpp. `type`: of the weights, none: each as it is (f64 as f32); norms, biases and
// learned positions are f32 in any case, and rows that are no multiple of 32 long f16 where q8_0 was asked for. Errors
// as above.
Result<ExportReport> export_gguf(const ExportSource& source, const fs::path& out, std::optional<GgufType> type);

// Writes the directory `out`: model.onnx, its weights in model.onnx.data, config.json and the tokenizer's files. The
// graph is the model's generation graph with batch size, length and past left open, under the names that Hugging Face's
// Optimum gives (export/onnx_lowering.h). `dtype` (f32, f16, bf16) is that of the stored weights; the graph computes in
// f32. Errors: as above, and usage for an op that has no counterpart, by its name.
Result<ExportReport> export_onnx(const ExportSource& source, const fs::path& out, DType dtype);

}  // namespace ingot
