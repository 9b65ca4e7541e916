// Saving checkpoints while the run goes on. A save is built as "step-N.tmp-PID", every file fsynced, and renamed to
// "step-N" once complete; then those of later steps (of a run that was given up) and all but the newest `keep` are
// removed. A save that fails, for whatever reason, leaves nothing of itself behind and touches none that were there
// before.
#pragma once

#include <memory>
#include <optional>

#include "base/files.h"
#include "base/parallel.h"
#include "checkpoint/manifest.h"

namespace ingot {

// A part of a tensor to save; `data` holds exactly `box` of a tensor of shape `shape`.
struct SavedPiece {
  std::string tensor;  // its Hugging Face name
  std::string kind;    // "weight", "adam_m", "adam_v": lower-case letters, digits, underscores
  Shape shape;
  Box box;
  ConstTensorView data;
};
SavedPiece whole_piece(std::string tensor, std::string kind, const ConstTensorView& data);

struct SavedFile {
  std::string name;  // "config.json", "tokenizer.json", …; not manifest.json, state.json or *.safetensors
  std::string content;
};

struct Snapshot {
  int64_t step = 0;
  std::string layout = "{}";  // a JSON object
  std::string state = "{}";   // a JSON document of the trainer's: schedule, data cursor, loss scale
  std::vector<SavedFile> files;
  std::vector<SavedPiece> pieces;  // the pieces of a tensor and kind cover it exactly once
};

struct CheckpointWriterOptions {
  fs::path directory;      // a run's checkpoints/; created where missing
  int keep = 5;            // at least 1
  bool background = true;  // false: save() returns when all is on disk
  // The step that the run resumed from, whose checkpoint is known to be intact. With it, checkpoints beyond `keep`
  // (left where a process died between completing one and removing another) go at the start; without it none does.
  std::optional<int64_t> resumed_step;
};

// Used from one thread. Owns the writing thread and, in the background mode, a staging copy of the snapshot's tensors
// that is allocated once and kept.
class CheckpointWriter {
 public:
  // Takes the directory for this process (a second writer is ErrorKind::usage) and removes what dead ones left
  // unfinished there.
  static Result<std::unique_ptr<CheckpointWriter>> create(const CheckpointWriterOptions& options);
  ~CheckpointWriter();  // waits
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  // Allocates and touches staging memory for snapshots of up to `bytes`, so that the first save does not have to.
  Status reserve(uint64_t bytes);
  // Saves a snapshot, whose tensors may change as soon as this returns. Waits for a save still under way. In the
  // background mode an error here is about this call (memory, a thread); what becomes of the writing is last_result()'s
  // and wait()'s. A failed write is logged as a warning here, once. The copy is spread over `pool` where given.
  Status save(Snapshot snapshot, const ThreadPool* pool = nullptr);
  // Waits for the save under way and returns last_result().
  Status wait();
  // How the latest save that ended went. Ok before the first.
  Status last_result() const;
  bool busy() const;
  uint64_t staging_bytes() const;  // held now

 private:
  struct State;
  explicit CheckpointWriter(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Disk that one checkpoint of the snapshot takes, rounded up for headers and blocks.
uint64_t checkpoint_bytes(const Snapshot& snapshot);
// Disk that `keep` of them need: one more, as the oldest goes after the newest is complete.
constexpr uint64_t required_disk_bytes(uint64_t one_checkpoint, int keep) {
  return one_checkpoint * (static_cast<uint64_t>(keep) + 1);
}
// Whether the file system of `directory` has room for that, counting the checkpoints that are there already as room.
// The error (ErrorKind::usage) says what is needed, what there is, and how many checkpoints would fit.
Status check_disk_space(const fs::path& directory, uint64_t one_checkpoint, int keep);

}  // namespace ingot
