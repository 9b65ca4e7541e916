// Writing safetensors files: streamed in bounded memory, published atomically. The bytes depend on the tensors and the
// metadata alone. Tensors lie by element size, largest first, then by name, so that each is aligned to its dtype (the
// format allows no holes; Hugging Face's own writer orders them so too). Errors are ErrorKind::failed.
#pragma once

#include <functional>
#include <optional>

#include "checkpoint/box.h"
#include "checkpoint/safetensors.h"

namespace ingot {

// Not thread-safe. A writer that is destroyed before finish() leaves nothing behind.
class SafetensorsWriter {
 public:
  // `tensors` in any order; their offset and bytes are computed here.
  static Result<SafetensorsWriter> create(const fs::path& path, std::vector<TensorInfo> tensors,
                                          const SafetensorsMetadata& metadata = {});
  // The tensors in the order in which their bytes must come.
  std::span<const TensorInfo> order() const { return tensors_; }
  // The next bytes of `name`, which is the first tensor of the order that is not complete; a tensor may come in parts.
  Status write(std::string_view name, std::span<const std::byte> bytes);
  // A whole tensor, converted to its dtype in the file where it has another.
  Status write(std::string_view name, const ConstTensorView& view);
  // Makes the file durable and visible under its name. All tensors must have been written.
  Status finish();
  uint64_t size() const { return file_.size(); }      // of the file so far
  uint64_t digest() const { return file_.digest(); }  // XXH3-64 of the file so far

 private:
  SafetensorsWriter(AtomicFile file, std::vector<TensorInfo> tensors)
      : file_(std::move(file)), tensors_(std::move(tensors)) {}
  void skip_complete();

  AtomicFile file_;
  std::vector<TensorInfo> tensors_;
  size_t next_ = 0;       // of tensors_
  uint64_t written_ = 0;  // bytes of tensors_[next_]
};

struct NamedTensor {
  std::string name;
  ConstTensorView view;  // without data where `read` gives it
  // For a tensor that is not in memory: fills `out`, of its dtype and the box's shape, with a box of it.
  std::function<Status(const Box& box, const TensorView& out)> read = {};
};

struct ModelWriteOptions {
  uint64_t max_shard_bytes = 5'000'000'000;        // of tensor data; a larger tensor has a shard of its own
  std::optional<DType> float_dtype;                // floats are converted to it, integers never; none: as they are
  SafetensorsMetadata metadata{{"format", "pt"}};  // without which some readers refuse a file
};

// Writes model.safetensors or, where that would pass max_shard_bytes, model-0000i-of-0000n.safetensors and the index,
// into `directory` (created where missing), and removes the files of a model that was there before. A reader finds the
// old model, the new one, or none, never a mixture.
Status write_model(const fs::path& directory, std::vector<NamedTensor> tensors, const ModelWriteOptions& options = {});

}  // namespace ingot
