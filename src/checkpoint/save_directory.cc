#include "checkpoint/save_directory.h"

#include <unistd.h>

#include <algorithm>
#include <map>

#include "base/log.h"
#include "checkpoint/reader.h"
#include "checkpoint/safetensors_writer.h"

namespace ingot {
namespace {

fs::path with_suffix(const fs::path& path, const char* what) {
  fs::path result = path;
  result += fmt::format(".{}-{}", what, ::getpid());
  return result;
}

// Removes what is left of a save unless it was released.
class PartialDirectory {
 public:
  explicit PartialDirectory(fs::path path) : path_(std::move(path)) {}
  ~PartialDirectory() {
    if (path_.empty()) return;
    const Status removed = ingot::remove_all(path_);
    if (!removed.ok()) log_warning("{}; the next start removes it", removed.error().message);
  }
  PartialDirectory(const PartialDirectory&) = delete;
  PartialDirectory& operator=(const PartialDirectory&) = delete;
  void release() { path_.clear(); }

 private:
  fs::path path_;
};

std::string key_of(const SavedPiece& piece) {
  return piece.box == Box::whole(piece.shape) ? piece.tensor : piece.tensor + piece.box.to_string();
}

Status write_boxes(const fs::path& directory, const std::string& kind, const std::vector<const SavedPiece*>& pieces,
                   Manifest& manifest) {
  const std::string name = fmt::format("{}-00000.safetensors", kind);  // the number is the rank's that wrote it
  std::map<std::string, const SavedPiece*> by_key;
  std::vector<TensorInfo> infos;
  for (const SavedPiece* piece : pieces) {
    const std::string key = key_of(*piece);
    by_key[key] = piece;
    infos.push_back({key, piece->data.dtype, piece->data.shape, 0, 0});
    manifest.pieces.push_back({piece->tensor, kind, piece->data.dtype, piece->shape, piece->box, name, key});
  }
  INGOT_ASSIGN(SafetensorsWriter writer, SafetensorsWriter::create(directory / name, std::move(infos)));
  for (const TensorInfo& info : writer.order()) {
    const ConstTensorView& data = by_key.at(info.name)->data;
    INGOT_TRY(writer.write(info.name, std::span(data.data, data.bytes())));
  }
  INGOT_TRY(writer.finish());
  manifest.files.push_back({name, writer.size(), writer.digest()});
  return {};
}

Status write_small_file(const fs::path& directory, const std::string& name, const std::string& content,
                        Manifest& manifest) {
  INGOT_TRY(write_file_atomic(directory / name, content));
  manifest.files.push_back({name, content.size(), hash_bytes(content)});
  return {};
}

Result<uint64_t> write_files(const fs::path& directory, const Snapshot& snapshot) {
  Manifest manifest;
  manifest.step = snapshot.step;
  manifest.layout = snapshot.layout;
  std::map<std::string, std::vector<const SavedPiece*>> kinds;
  for (const SavedPiece& piece : snapshot.pieces) kinds[piece.kind].push_back(&piece);
  for (const auto& [kind, pieces] : kinds) INGOT_TRY(write_boxes(directory, kind, pieces, manifest));
  for (const SavedFile& file : snapshot.files)
    INGOT_TRY(write_small_file(directory, file.name, file.content, manifest));
  INGOT_TRY(write_small_file(directory, std::string(kStateName), snapshot.state, manifest));
  uint64_t bytes = 0;
  for (const ManifestFile& file : manifest.files) bytes += file.bytes;
  INGOT_ASSIGN(const std::string text, render_manifest(std::move(manifest)));
  const auto consistent = parse_manifest(text, "the manifest of this save");
  INGOT_CHECK(consistent.ok(), "{}", consistent.error().message);
  INGOT_TRY(write_file_atomic(directory / kManifestName, text));
  return bytes + text.size();
}

}  // namespace

Result<uint64_t> save_directory(const fs::path& directory, const Snapshot& snapshot) {
  const uint64_t needed = checkpoint_bytes(snapshot);
  INGOT_ASSIGN(const uint64_t room, free_disk_bytes(directory));
  if (room < needed)
    return failed_error("{} bytes are needed and the disk of {} has {} left", needed, directory.string(), room);
  const fs::path final_path = directory / checkpoint_name(snapshot.step);
  const fs::path partial = with_suffix(final_path, "tmp");
  INGOT_TRY(ingot::remove_all(partial));
  INGOT_TRY(ingot::create_directories(partial));
  PartialDirectory guard(partial);
  INGOT_ASSIGN(const uint64_t bytes, write_files(partial, snapshot));
  INGOT_TRY(publish_directory(partial, final_path, with_suffix(final_path, "old")));
  guard.release();
  return bytes;
}

Status prune_checkpoints(const fs::path& directory, int keep, int64_t newest, LaterSteps later_steps) {
  INGOT_ASSIGN(const auto entries, list_checkpoints(directory));
  std::vector<const CheckpointEntry*> victims;  // in the order in which they go
  for (const CheckpointEntry& entry : entries)
    if (entry.complete && entry.step != newest) victims.push_back(&entry);
  const auto earlier = std::stable_partition(victims.begin(), victims.end(),
                                             [&](const CheckpointEntry* entry) { return entry->step > newest; });
  const int64_t later = later_steps == LaterSteps::all_go ? earlier - victims.begin() : 0;
  const int64_t count = std::max(static_cast<int64_t>(victims.size()) - (keep - 1), later);
  for (int64_t i = 0; i < count; ++i) {
    const fs::path& path = victims[static_cast<size_t>(i)]->path;
    const fs::path doomed = with_suffix(path, "old");
    INGOT_TRY(ingot::remove_all(doomed));
    // Under its own name a checkpoint is whole or not there at all, also when the deletion is cut short.
    const Status renamed = rename_durably(path, doomed);
    INGOT_TRY(ingot::remove_all(doomed));  // also where the rename happened and only its fsync failed
    INGOT_TRY(renamed);
  }
  return {};
}

}  // namespace ingot
