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

Status run_export(const ExportFlags& flags) {
  INGOT_ASSIGN(const LoadedModel model, open_model(flags.model));
  const ExportSource source{model.directory, model.model, model.tokenizer ? &*model.tokenizer : nullptr};
  INGOT_ASSIGN(const ExportReport report, flags.format == "hf" ? to_hf(flags, source) : to_gguf(flags, source));
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
  CLI::App* verb = app.add_subcommand("export", "Writes a model for other engines: Hugging Face, llama.cpp");
  verb->footer(
      "Example: ingot export runs/demo/model --format gguf --dtype q8_0 --out demo.gguf\n"
      "         ingot export runs/demo/checkpoints/step-00000500 --format hf --dtype bf16 --out demo");
  verb->add_option("model", flags->model, "A Hugging Face directory, a run's model/ or a checkpoint directory")
      ->required();
  verb->add_option("--format", flags->format, "hf: a directory with safetensors; gguf: a file for llama.cpp")
      ->required()
      ->check(CLI::IsMember({"hf", "gguf"}));
  verb->add_option("--out", flags->out, "The directory (hf) or the file (gguf) to write")->required();
  verb->add_option("--dtype", flags->dtype, "f32, f16, bf16, q8_0 (gguf alone); default: as the weights are stored")
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
