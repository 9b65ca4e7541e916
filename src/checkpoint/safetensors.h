// Safetensors files (https://github.com/huggingface/safetensors): an 8-byte little-endian header length, a JSON header
// {"name": {"dtype", "shape", "data_offsets": [begin, end)}, …, "__metadata__": {…}}, then the tensors' bytes, without
// holes. A file is validated completely before any tensor of it can be had. Errors are ErrorKind::input and name file
// and tensor. Everything here is immutable after opening and may be read from any thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"
#include "base/result.h"
#include "base/tensor.h"

namespace ingot {

struct TensorInfo {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
  uint64_t offset = 0;  // of the first byte, from the start of the file
  uint64_t bytes = 0;
};

using SafetensorsMetadata = std::map<std::string, std::string>;

struct SafetensorsHeader {
  std::vector<TensorInfo> tensors;  // by name
  SafetensorsMetadata metadata;
};

// Names of dtypes as the format writes them: "F32". Reading also takes BOOL, as u8.
std::string_view safetensors_name(DType dtype);

// The header of the file whose whole content is `file`; `where` begins every error.
Result<SafetensorsHeader> parse_safetensors(std::span<const std::byte> file, const std::string& where);

// The "weight_map" of a model.safetensors.index.json: tensor -> shard, a plain file name.
Result<std::map<std::string, std::string>> parse_safetensors_index(std::string_view text, const std::string& where);

// One file, memory-mapped. Views point into the map and live as long as this object (moving it keeps them valid). Their
// data is aligned to their dtype only if the file's writer aligned it; convert_elements (checkpoint/convert.h) takes
// any.
class SafetensorsFile {
 public:
  static Result<SafetensorsFile> open(const fs::path& path);

  const fs::path& path() const { return path_; }
  std::span<const TensorInfo> tensors() const { return header_.tensors; }  // by name
  const TensorInfo* find(std::string_view name) const;                     // nullptr: there is none
  ConstTensorView view(const TensorInfo& info) const;                      // `info` is one of tensors()
  ConstTensorView view(std::string_view name) const;                       // a tensor that find() finds
  const SafetensorsMetadata& metadata() const { return header_.metadata; }

 private:
  fs::path path_;
  MappedFile file_;
  SafetensorsHeader header_;
};

// All tensors of a model, from one file or from the shards that an index names.
class SafetensorsModel {
 public:
  struct Tensor {
    TensorInfo info;                  // info.offset is within `file`
    const std::byte* data = nullptr;  // in a map or in memory that the model owns
    fs::path file;
  };
  using OwnedBytes = std::vector<std::unique_ptr<std::byte[]>>;

  // `path`: a directory with model.safetensors or, failing that, model.safetensors.index.json; or one such file.
  // A shard that the index names and that is missing or lacks a tensor is an error. Files beside the index that it does
  // not name are not read, and tensors of a shard that it does not list are left out with a warning.
  static Result<SafetensorsModel> open(const fs::path& path);
  // Of tensors that point into `files` or `owned`.
  SafetensorsModel(std::vector<Tensor> tensors, std::vector<SafetensorsFile> files, OwnedBytes owned);

  std::span<const Tensor> tensors() const { return tensors_; }  // by name
  const Tensor* find(std::string_view name) const;
  static ConstTensorView view(const Tensor& tensor) { return {tensor.data, tensor.info.dtype, tensor.info.shape}; }
  uint64_t bytes() const;  // of all tensors

 private:
  std::vector<Tensor> tensors_;
  std::vector<SafetensorsFile> files_;
  OwnedBytes owned_;
};

// Whether `name` names a file within a directory: no separators, not "." or "..", not empty.
bool is_plain_file_name(std::string_view name);

}  // namespace ingot
