#include <algorithm>

#include "checkpoint/model_weights.h"
#include "checkpoint/safetensors_writer.h"
#include "checkpoint/weight_source.h"
#include "export/export.h"
#include "export/export_directory.h"
#include "export/narrow.h"

namespace ingot {
namespace {

// The dtype of most of the weights' bytes, once stored.
DType prevailing_dtype(const SafetensorsModel& weights, std::optional<DType> chosen) {
  if (chosen) return *chosen;
  std::map<DType, uint64_t> bytes;
  for (const SafetensorsModel::Tensor& tensor : weights.tensors())
    if (is_float(tensor.info.dtype)) bytes[tensor.info.dtype] += tensor.info.bytes;
  const auto most =
      std::max_element(bytes.begin(), bytes.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == bytes.end() ? DType::f32 : most->first;
}

std::vector<NamedTensor> tensors_of(const WeightSource& source, std::optional<DType> dtype) {
  std::vector<NamedTensor> tensors;
  for (const SafetensorsModel::Tensor& tensor : source.weights().tensors()) {
    const auto read = [&source, &tensor, dtype](const Box& box, const TensorView& out) -> Status {
      INGOT_TRY(source.read(tensor, box, out));
      if (!dtype || !is_float(out.dtype)) return {};
      const auto count = static_cast<size_t>(out.shape.elements());
      const auto lost = first_overflow(out.dtype, out.data, *dtype, count);
      return lost ? Status(overflow_error(tensor.info.name, *lost, name_of(*dtype))) : Status();
    };
    tensors.push_back({tensor.info.name, {nullptr, tensor.info.dtype, tensor.info.shape}, read});
  }
  return tensors;
}

}  // namespace

Result<ExportReport> export_hf(const ExportSource& model, const fs::path& out, const HfExportOptions& options) {
  INGOT_TRY(check_export_place(model.directory, out));
  if (const auto keys = model.model.own_keys(); !keys.empty())
    return usage_error("{}: {} is Ingot's own; Hugging Face's classes have no such model", model.directory.string(),
                       keys.front());
  INGOT_ASSIGN(const WeightSource source, WeightSource::open(model.directory));
  INGOT_TRY(match_weights(source.weights(), model.model, model.directory));
  const DType dtype = prevailing_dtype(source.weights(), options.dtype);
  ModelWriteOptions writing;
  writing.max_shard_bytes = options.max_shard_bytes;
  writing.float_dtype = options.dtype;
  INGOT_ASSIGN(ExportReport report, write_export(source, model.directory, out, dtype, [&](const fs::path& directory) {
                 return write_model(directory, tensors_of(source, options.dtype), writing);
               }));
  report.tensors = source.weights().tensors().size();
  return report;
}

}  // namespace ingot
