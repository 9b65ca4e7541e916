// ingot checkpoint inspect | verify: what a checkpoint holds, and whether every byte of it is intact.
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "checkpoint/reader.h"
#include "command.h"

namespace ingot::cli {
namespace {

using nlohmann::ordered_json;

struct CheckpointFlags {
  std::string path;
  bool json = false;
};

// ---- inspect

ordered_json describe_piece(const ManifestPiece& piece) {
  return {{"file", piece.file}, {"start", piece.box.start.dims()}, {"stop", piece.box.stop.dims()}};
}

ordered_json describe_tensor(const Checkpoint& checkpoint, const Checkpoint::Tensor& tensor) {
  ordered_json pieces = ordered_json::array();
  for (size_t i = 0; i < tensor.pieces; ++i)
    pieces.push_back(describe_piece(checkpoint.manifest().pieces[tensor.first_piece + i]));
  return {{"name", tensor.name},
          {"kind", tensor.kind},
          {"dtype", name_of(tensor.dtype)},
          {"shape", tensor.shape.dims()},
          {"bytes", static_cast<uint64_t>(tensor.shape.elements()) * size_of(tensor.dtype)},
          {"pieces", std::move(pieces)}};
}

ordered_json describe(const Checkpoint& checkpoint) {
  ordered_json json{{"path", checkpoint.path().string()},
                    {"step", checkpoint.step()},
                    {"layout", ordered_json::parse(checkpoint.manifest().layout)},
                    {"bytes", checkpoint.bytes()},
                    {"files", ordered_json::array()},
                    {"tensors", ordered_json::array()}};
  for (const ManifestFile& file : checkpoint.manifest().files)
    json["files"].push_back({{"name", file.name}, {"bytes", file.bytes}, {"xxh3", hash_text(file.hash)}});
  for (const Checkpoint::Tensor& tensor : checkpoint.tensors())
    json["tensors"].push_back(describe_tensor(checkpoint, tensor));
  return json;
}

void print_description(const Checkpoint& checkpoint) {
  std::cout << fmt::format("{}\nstep {}, layout {}, {} bytes\n\nfiles\n", checkpoint.path().string(), checkpoint.step(),
                           checkpoint.manifest().layout, checkpoint.bytes());
  for (const ManifestFile& file : checkpoint.manifest().files)
    std::cout << fmt::format("  {:<32} {:>14} bytes  xxh3 {}\n", file.name, file.bytes, hash_text(file.hash));
  std::string kind;
  for (const Checkpoint::Tensor& tensor : checkpoint.tensors()) {
    if (tensor.kind != kind) std::cout << fmt::format("\n{}\n", tensor.kind);
    kind = tensor.kind;
    std::cout << fmt::format("  {:<56} {:<5} {:<16} {:>14} bytes", tensor.name, name_of(tensor.dtype),
                             tensor.shape.to_string(),
                             static_cast<uint64_t>(tensor.shape.elements()) * size_of(tensor.dtype));
    std::cout << (tensor.pieces == 1 ? "\n" : fmt::format("  in {} pieces\n", tensor.pieces));
  }
}

Status inspect(const CheckpointFlags& flags) {
  INGOT_ASSIGN(const auto paths, resolve_checkpoints(flags.path));
  INGOT_ASSIGN(const Checkpoint newest, Checkpoint::open(paths.back()));
  if (!flags.json) {
    print_description(newest);
    if (paths.size() > 1) std::cout << fmt::format("\nthe newest of {} checkpoints\n", paths.size());
    return {};
  }
  ordered_json json = describe(newest);
  json["checkpoints"] = ordered_json::array();
  for (const fs::path& path : paths) json["checkpoints"].push_back(path.string());
  print_json(json);
  return {};
}

// ---- verify

ordered_json describe(const fs::path& path, const VerifyReport& report) {
  ordered_json json{{"path", path.string()}, {"step", nullptr},       {"ok", report.damaged.empty()},
                    {"files", report.files}, {"bytes", report.bytes}, {"damaged", ordered_json::array()}};
  if (report.step >= 0) json["step"] = report.step;
  for (const Damage& damage : report.damaged)
    json["damaged"].push_back({{"file", damage.file}, {"problem", damage.problem}});
  return json;
}

Status verify(const CheckpointFlags& flags) {
  INGOT_ASSIGN(const auto paths, resolve_checkpoints(flags.path));
  ordered_json checkpoints = ordered_json::array();
  std::string damaged;
  for (const fs::path& path : paths) {
    INGOT_ASSIGN(const VerifyReport report, verify_checkpoint(path));
    checkpoints.push_back(describe(path, report));
    for (const Damage& damage : report.damaged)
      damaged += fmt::format("{}{}: {}", damaged.empty() ? "" : "; ", (path / damage.file).string(), damage.problem);
    if (!flags.json && report.damaged.empty())
      std::cout << fmt::format("{}: intact, {} files, {} bytes\n", path.string(), report.files, report.bytes);
  }
  if (flags.json) print_json({{"ok", damaged.empty()}, {"path", flags.path}, {"checkpoints", std::move(checkpoints)}});
  if (damaged.empty()) return {};
  return failed_error("damaged: {}", damaged);
}

void add_verb(CLI::App& parent, Command& command, const char* name, const char* help, const char* example,
              Status (*action)(const CheckpointFlags&)) {
  auto flags = std::make_shared<CheckpointFlags>();
  CLI::App* verb = parent.add_subcommand(name, help);
  verb->add_option("PATH", flags->path, "A checkpoint (…/step-00000500), a run's checkpoints/, or its output directory")
      ->required();
  verb->add_flag("--json", flags->json, "Print one JSON object");
  verb->footer(example);
  verb->callback([flags, &command, action] { command.run = [flags, action] { return action(*flags); }; });
}

}  // namespace

void add_checkpoint(CLI::App& app, Command& command) {
  CLI::App* verb = app.add_subcommand("checkpoint", "Look into saved checkpoints");
  verb->require_subcommand(1);
  verb->footer("Example: ingot checkpoint verify runs/demo");
  add_verb(*verb, command, "inspect",
           "Show what a checkpoint holds: step, layout, files, tensors (of a run: its newest)",
           "Example: ingot checkpoint inspect runs/demo/checkpoints/step-00000500 --json", &inspect);
  add_verb(*verb, command, "verify",
           "Read every byte of a checkpoint (of a run: of all) against its checksums; exit 1 where one is damaged",
           "Example: ingot checkpoint verify runs/demo", &verify);
}

}  // namespace ingot::cli
