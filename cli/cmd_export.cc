// ingot export: a model for other engines.
#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "command.h"
#include "export/export.h"
#include "infer/loaded_model.h"

namespace ingot::cli {
namespace {

struct ExportFlags {
  std::string model, format, out, dtype;
  uint64_t max_shard_size = HfExportOptions().max_shard_bytes;
  bool shards = false;  // --max-shard-size was given
  bool json = false;
};

Result<ExportReport> to_hf(const ExportFlags& flags, const ExportSource& source) {
  HfExportOptions options;
  options.max_shard_bytes = flags.max_shard_size;
  if (flags.dtype == "q8_0") return usage_error("--dtype q8_0: safetensors files have f32, f16 and bf16 alone");
  if (!flags.dtype.empty()) options.dtype = dtype_from_name(flags.dtype);
  return export_hf(source, flags.out, options);
}

Result<ExportReport> to_gguf(const ExportFlags& flags, const ExportSource& source) {
  if (flags.shards) return usage_error("--max-shard-size: a GGUF file is one file");
  std::optional<GgufType> type;
  for (const GgufType known : {GgufType::f32, GgufType::f16, GgufType::bf16, GgufType::q8_0})
    if (flags.dtype == name_of(known)) type = known;
  return export_gguf(source, flags.out, type);
}

Result<ExportReport> to_onnx(const ExportFlags& flags, const ExportSource& source) {
  if (flags.shards) return usage_error("--max-shard-size: the weights of an ONNX graph are one file");
  if (flags.dtype == "q8_0") return usage_error("--dtype q8_0: an ONNX graph has f32, f16 and bf16 alone");
  return export_onnx(source, flags.out, dtype_from_name(flags.dtype).value_or(DType::f32));
}

Result<ExportReport> export_as(const ExportFlags& flags, const ExportSource& source) {
  if (flags.format == "hf") return to_hf(flags, source);
  return flags.format == "gguf" ? to_gguf(flags, source) : to_onnx(flags, source);
}

Status run_export(const ExportFlags& flags) {
  INGOT_ASSIGN(const LoadedModel model, open_model(flags.model));
  const ExportSource source{model.directory, model.model, model.tokenizer ? &*model.tokenizer : nullptr};
  INGOT_ASSIGN(const ExportReport report, export_as(flags, source));
  if (flags.json) {
    print_json({{"format", flags.format},
                {"out", flags.out},
                {"dtype", report.dtype},
                {"tensors", report.tensors},
                {"bytes", report.bytes},
                {"files", report.files}});
    return {};
  }
  fmt::print("{}: {} tensors, mostly {}, {} bytes in {} file{}\n", flags.out, report.tensors, report.dtype,
             report.bytes, report.files.size(), report.files.size() == 1 ? "" : "s");
  return {};
}

}  // namespace

void add_export(CLI::App& app, Command& command) {
  auto flags = std::make_shared<ExportFlags>();
  CLI::App* verb = app.add_subcommand("export", "Writes a model for other engines: Hugging Face, llama.cpp, ONNX");
  verb->footer(
      "Example: ingot export runs/demo/model --format gguf --dtype q8_0 --out demo.gguf\n"
      "         ingot export runs/demo/checkpoints/step-00000500 --format hf --dtype bf16 --out demo\n"
      "         ingot export runs/demo/model --format onnx --out demo-onnx");
  verb->add_option("model", flags->model, "A Hugging Face directory, a run's model/ or a checkpoint directory")
      ->required();
  verb->add_option("--format", flags->format,
                   "hf: a directory with safetensors; gguf: a file for llama.cpp; onnx: a directory with a graph")
      ->required()
      ->check(CLI::IsMember({"hf", "gguf", "onnx"}));
  verb->add_option("--out", flags->out, "The directory (hf, onnx) or the file (gguf) to write")->required();
  verb->add_option("--dtype", flags->dtype,
                   "f32, f16, bf16, q8_0 (gguf alone); default: as the weights are stored, onnx: f32")
      ->check(CLI::IsMember({"f32", "f16", "bf16", "q8_0"}));
  CLI::Option* shards = verb->add_option("--max-shard-size", flags->max_shard_size,
                                         "hf: bytes of tensors in a file, beyond which there are several")
                            ->capture_default_str()
                            ->check(CLI::PositiveNumber);
  verb->add_flag("--json", flags->json, "Print {format, out, dtype, tensors, bytes, files}");
  verb->callback([flags, shards, &command] {
    flags->shards = shards->count() > 0;
    command.run = [flags] { return run_export(*flags); };
  });
}

}  // namespace ingot::cli
