#include "checkpoint/model_weights.h"
#include "export/export.h"
#include "export/export_directory.h"
#include "export/onnx_file.h"
#include "export/onnx_lowering.h"
#include "export/weight_rows.h"

namespace ingot {
namespace {

constexpr uint64_t kAlignment = 4096;  // of a weight in the data file, so that it can be mapped

void place_weights(OnnxGraph& graph) {
  uint64_t end = 0;
  for (OnnxWeight& weight : graph.weights) {
    weight.offset = (end + kAlignment - 1) / kAlignment * kAlignment;
    end = weight.offset + weight.bytes;
  }
}

Status write_weights(const OnnxGraph& graph, const Model& model, const WeightSource& source,
                     const std::vector<const SafetensorsModel::Tensor*>& tensors, const fs::path& file) {
  std::map<std::string, const SafetensorsModel::Tensor*> by_parameter;
  for (size_t i = 0; i < tensors.size(); ++i) by_parameter[model.parameters()[i].name] = tensors[i];
  INGOT_ASSIGN(AtomicFile out, AtomicFile::create(file));
  for (const OnnxWeight& weight : graph.weights) {
    INGOT_TRY(out.write(std::string(weight.offset - out.size(), '\0')));
    const RowOrder order = weight.transposed ? RowOrder::transposed : RowOrder::same;
    INGOT_TRY(stream_weight(source, {by_parameter.at(weight.parameter), order, 1, weight.dtype}, name_of(weight.dtype),
                            [&](std::span<const std::byte> part) { return out.write(part); }));
    INGOT_CHECK(out.size() == weight.offset + weight.bytes, "{} bytes of {}, expected {}", out.size() - weight.offset,
                weight.name, weight.bytes);
  }
  return out.publish();
}

}  // namespace

Result<ExportReport> export_onnx(const ExportSource& model, const fs::path& out, DType dtype) {
  INGOT_TRY(check_export_place(model.directory, out));
  const std::string where = model.directory.string();
  INGOT_ASSIGN(const OpenGraph open, open_generation_graph(model.model));
  INGOT_ASSIGN(OnnxGraph graph, lower_to_onnx(open, dtype, where));
  place_weights(graph);
  INGOT_ASSIGN(const WeightSource source, WeightSource::open(model.directory));
  INGOT_ASSIGN(const auto tensors, match_weights(source.weights(), model.model, model.directory));
  const auto write = [&](const fs::path& directory) -> Status {
    INGOT_TRY(write_weights(graph, model.model, source, tensors, directory / kOnnxDataFile));
    return write_onnx(graph, directory);
  };
  INGOT_ASSIGN(ExportReport report, write_export(source, model.directory, out, dtype, write));
  report.tensors = graph.weights.size();
  return report;
}

}  // namespace ingot
