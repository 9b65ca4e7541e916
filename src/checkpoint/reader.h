// Reading checkpoint directories. Errors are ErrorKind::input. A Checkpoint is immutable and may be read from any
// thread.
#pragma once

#include <optional>

#include "checkpoint/manifest.h"
#include "checkpoint/safetensors.h"

namespace ingot {

// "step-00000500".
std::string checkpoint_name(int64_t step);

class Checkpoint {
 public:
  struct Tensor {
    std::string name, kind;
    DType dtype = DType::f32;
    Shape shape;
    size_t first_piece = 0, pieces = 0;  // of manifest().pieces
  };

  // `directory` is one checkpoint ("…/step-00000500"). The manifest, the files' sizes and the boxes' headers are
  // checked here, the bytes are not: verify_checkpoint does that.
  static Result<Checkpoint> open(const fs::path& directory);

  const fs::path& path() const { return path_; }
  int64_t step() const { return manifest_.step; }
  const Manifest& manifest() const { return manifest_; }
  uint64_t bytes() const;  // of all files
  bool has_file(std::string_view name) const;
  // The content of config.json, state.json, …, its checksum verified.
  Result<std::string> read_file(std::string_view name) const;

  std::span<const Tensor> tensors() const { return tensors_; }  // by kind, then name
  const Tensor* find(std::string_view name, std::string_view kind) const;
  // Fills `destination` with `box` of a tensor, from whichever pieces hold it, converting between float dtypes. It is
  // an error if the checkpoint has no such tensor, or one of another shape than `shape`. Memory is the caller's;
  // nothing is allocated in proportion to the tensor.
  Status assemble(std::string_view name, std::string_view kind, const Shape& shape, const Box& box,
                  const TensorView& destination) const;
  // The whole tensor.
  Status read_tensor(std::string_view name, std::string_view kind, const TensorView& destination) const;
  // The one piece that is all of `tensor`, in the map; none where it is cut into several.
  std::optional<ConstTensorView> whole_view(const Tensor& tensor) const;

 private:
  Status check_files() const;
  Status open_boxes();
  void group_tensors();
  ConstTensorView piece_view(const ManifestPiece& piece) const;

  fs::path path_;
  Manifest manifest_;
  std::map<std::string, SafetensorsFile, std::less<>> boxes_;  // by file name
  std::vector<Tensor> tensors_;
};

struct Damage {
  std::string file;
  std::string problem;
};
struct VerifyReport {
  int64_t step = -1;  // -1: the manifest itself is damaged
  size_t files = 0;
  uint64_t bytes = 0;
  std::vector<Damage> damaged;    // empty: every byte is as it was written
  std::string to_string() const;  // the damage in one line
};
// Reads every byte of the checkpoint in `directory`. An error: there is no checkpoint (no manifest.json).
Result<VerifyReport> verify_checkpoint(const fs::path& directory);

struct CheckpointEntry {
  fs::path path;
  int64_t step = 0;
  bool complete =
      false;  // it has a manifest under its final name; whether the bytes are right is verify_checkpoint's matter
  std::string problem;  // why it is not complete
};
// Every checkpoint in `directory` (a run's checkpoints/), complete or not, by step. A directory that does not exist
// holds none.
Result<std::vector<CheckpointEntry>> list_checkpoints(const fs::path& directory);

// The newest checkpoint in `directory` every byte of which is intact; none where there is no complete one. Logs a
// warning for each newer one that it passes over, with the reason. That all complete ones are damaged is an error.
Result<std::optional<Checkpoint>> find_newest_checkpoint(const fs::path& directory);

// The checkpoints that `path` means: itself, or those of a run's output directory or of its checkpoints/ directory, by
// step, complete ones only. An error where it means none.
Result<std::vector<fs::path>> resolve_checkpoints(const fs::path& path);

// The weights of a Hugging Face directory or file, or of a checkpoint (pieces that are not whole are put together in
// memory).
Result<SafetensorsModel> open_weights(const fs::path& path);

}  // namespace ingot
