#include "checkpoint/weight_source.h"

namespace ingot {
namespace {

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

SafetensorsModel weights_of(const Checkpoint& checkpoint) {
  std::vector<SafetensorsModel::Tensor> weights;
  for (const Checkpoint::Tensor& tensor : checkpoint.tensors()) {
    if (tensor.kind != "weight") continue;
    SafetensorsModel::Tensor weight;
    weight.info.name = tensor.name;
    weight.info.dtype = tensor.dtype;
    weight.info.shape = tensor.shape;
    weight.info.bytes = static_cast<uint64_t>(tensor.shape.elements()) * size_of(tensor.dtype);
    weight.file = checkpoint.path() / checkpoint.manifest().pieces[tensor.first_piece].file;
    if (const auto view = checkpoint.whole_view(tensor)) weight.data = view->data;
    weights.push_back(std::move(weight));
  }
  return SafetensorsModel(std::move(weights), {}, {});
}

}  // namespace

Result<WeightSource> WeightSource::open(const fs::path& path) {
  if (!is_file(path / kManifestName)) {
    INGOT_ASSIGN(SafetensorsModel weights, SafetensorsModel::open(path));
    return WeightSource(path, std::nullopt, std::move(weights));
  }
  INGOT_ASSIGN(const VerifyReport report, verify_checkpoint(path));
  if (!report.damaged.empty()) return input_error("{} is damaged: {}", path.string(), report.to_string());
  INGOT_ASSIGN(Checkpoint checkpoint, Checkpoint::open(path));
  SafetensorsModel weights = weights_of(checkpoint);  // views into the checkpoint's maps, which stay where they are
  return WeightSource(path, std::move(checkpoint), std::move(weights));
}

Status WeightSource::read(const SafetensorsModel::Tensor& tensor, const Box& box, const TensorView& out) const {
  if (out.bytes() == 0) return {};
  if (tensor.data == nullptr) return checkpoint_->assemble(tensor.info.name, "weight", tensor.info.shape, box, out);
  copy_box(box, SafetensorsModel::view(tensor), Box::whole(tensor.info.shape), out, box);
  return {};
}

Result<std::optional<std::string>> WeightSource::read_file(const std::string& name) const {
  if (!is_file(path_ / name)) return std::optional<std::string>();
  if (checkpoint_ && checkpoint_->has_file(name)) {
    INGOT_ASSIGN(std::string content, checkpoint_->read_file(name));
    return std::optional<std::string>(std::move(content));
  }
  INGOT_ASSIGN(std::string content, ingot::read_file(path_ / name));
  return std::optional<std::string>(std::move(content));
}

}  // namespace ingot
