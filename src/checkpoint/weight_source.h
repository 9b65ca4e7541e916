// The weights of a Hugging Face directory or of a checkpoint, read part by part: for what must not hold whole tensors
// in memory. Whole tensors are memory-mapped; what a checkpoint cut into pieces is put together box by box.
#pragma once

#include <optional>

#include "checkpoint/box.h"
#include "checkpoint/reader.h"

namespace ingot {

class WeightSource {
 public:
  // Every byte of a checkpoint is compared with its checksum first. Errors: input.
  static Result<WeightSource> open(const fs::path& path);

  // `data` is null for a tensor that is cut into pieces.
  const SafetensorsModel& weights() const { return weights_; }
  // Fills `out`, of the tensor's dtype and the box's shape, with `box` of one of weights().tensors().
  Status read(const SafetensorsModel::Tensor& tensor, const Box& box, const TensorView& out) const;
  // The content of a file beside the weights, checked in a checkpoint; none where there is no such file.
  Result<std::optional<std::string>> read_file(const std::string& name) const;

 private:
  WeightSource(fs::path path, std::optional<Checkpoint> checkpoint, SafetensorsModel weights)
      : path_(std::move(path)), checkpoint_(std::move(checkpoint)), weights_(std::move(weights)) {}

  fs::path path_;
  std::optional<Checkpoint> checkpoint_;
  SafetensorsModel weights_;
};

}  // namespace ingot
