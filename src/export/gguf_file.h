// Writing GGUF files, version 3 (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md): typed metadata, tensor
// descriptions, then the tensors' bytes, each at a multiple of kGgufAlignment. Streamed in bounded memory, published
// atomically. Errors are ErrorKind::failed.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/files.h"
#include "base/shape.h"

namespace ingot {

// How the elements of a tensor are stored; the numbers are the format's.
enum class GgufType : uint32_t {
  f32 = 0,
  f16 = 1,
  q8_0 = 8,  // blocks of 32 elements of a row: a scale in f16, then 32 signed bytes
  bf16 = 30
};

inline constexpr int64_t kQ8Block = 32;
inline constexpr uint64_t kGgufAlignment = 32;

std::string_view name_of(GgufType type);  // "f32", "q8_0"
// Of `elements` elements, whole blocks.
uint64_t stored_bytes(GgufType type, int64_t elements);

using GgufValue = std::variant<uint32_t, float, bool, std::string, std::vector<std::string>, std::vector<float>,
                               std::vector<int32_t>>;
using GgufMetadata = std::vector<std::pair<std::string, GgufValue>>;

struct GgufTensor {
  std::string name;
  GgufType type = GgufType::f32;
  Shape shape;  // row-major; the file lists the dimensions in the opposite order
  uint64_t bytes() const { return stored_bytes(type, shape.elements()); }
};

// Not thread-safe. A writer that is destroyed before finish() leaves nothing behind.
class GgufWriter {
 public:
  // Writes all but the tensors' bytes. `tensors` in the order in which their bytes will come.
  static Result<GgufWriter> create(const fs::path& path, const GgufMetadata& metadata, std::vector<GgufTensor> tensors);
  // The next bytes of the first tensor that is not complete; a tensor may come in parts.
  Status write(std::span<const std::byte> bytes);
  // Makes the file durable and visible under its name. All tensors must have been written.
  Status finish();
  uint64_t size() const { return file_.size(); }  // of the file so far

 private:
  GgufWriter(AtomicFile file, std::vector<GgufTensor> tensors) : file_(std::move(file)), tensors_(std::move(tensors)) {}
  Status pad();

  AtomicFile file_;
  std::vector<GgufTensor> tensors_;
  size_t next_ = 0;       // of tensors_
  uint64_t written_ = 0;  // bytes of tensors_[next_]
};

}  // namespace ingot
