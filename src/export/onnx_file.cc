#include "export/onnx_file.h"

// How Debian's library is built.
#define ONNX_ML 1
#define ONNX_NAMESPACE onnx
#include <onnx/checker.h>
#include <onnx/onnx_pb.h>
#include <onnx/shape_inference/implementation.h>

namespace ingot {
namespace {

void fill(const OnnxPort& port, onnx::ValueInfoProto& out) {
  out.set_name(port.name);
  auto& tensor = *out.mutable_type()->mutable_tensor_type();
  tensor.set_elem_type(static_cast<int32_t>(onnx_type(port.dtype)));
  auto& shape = *tensor.mutable_shape();
  for (const OnnxExtent& extent : port.shape) {
    auto& dim = *shape.add_dim();
    if (const auto* symbol = std::get_if<std::string>(&extent))
      dim.set_dim_param(*symbol);
    else
      dim.set_dim_value(std::get<int64_t>(extent));
  }
}

void fill(const OnnxAttribute& attribute, onnx::AttributeProto& out) {
  out.set_name(attribute.name);
  if (const auto* integer = std::get_if<int64_t>(&attribute.value)) {
    out.set_type(onnx::AttributeProto::INT);
    out.set_i(*integer);
  } else if (const auto* number = std::get_if<float>(&attribute.value)) {
    out.set_type(onnx::AttributeProto::FLOAT);
    out.set_f(*number);
  } else {
    out.set_type(onnx::AttributeProto::INTS);
    for (const int64_t one : std::get<std::vector<int64_t>>(attribute.value)) out.add_ints(one);
  }
}

void fill(const OnnxNode& node, onnx::NodeProto& out) {
  out.set_op_type(node.op);
  out.set_name(node.name);
  for (const std::string& input : node.inputs) out.add_input(input);
  for (const std::string& output : node.outputs) out.add_output(output);
  for (const OnnxAttribute& attribute : node.attributes) fill(attribute, *out.add_attribute());
}

void fill(const OnnxConstant& constant, onnx::TensorProto& out) {
  out.set_name(constant.name);
  out.set_data_type(static_cast<int32_t>(onnx_type(constant.dtype)));
  for (const int64_t extent : constant.shape) out.add_dims(extent);
  out.set_raw_data(constant.bytes);
}

void fill(const OnnxWeight& weight, onnx::TensorProto& out) {
  out.set_name(weight.name);
  out.set_data_type(static_cast<int32_t>(onnx_type(weight.dtype)));
  for (const int64_t extent : weight.shape) out.add_dims(extent);
  out.set_data_location(onnx::TensorProto::EXTERNAL);
  const auto entry = [&](const char* key, const std::string& value) {
    auto& pair = *out.add_external_data();
    pair.set_key(key);
    pair.set_value(value);
  };
  entry("location", kOnnxDataFile);
  entry("offset", std::to_string(weight.offset));
  entry("length", std::to_string(weight.bytes));
}

onnx::ModelProto model_of(const OnnxGraph& graph) {
  onnx::ModelProto model;
  model.set_ir_version(8);  // the one that came with the opset
  model.set_producer_name("ingot");
  model.add_opset_import()->set_version(kOnnxOpset);
  onnx::GraphProto& out = *model.mutable_graph();
  out.set_name(graph.name);
  for (const OnnxPort& port : graph.inputs) fill(port, *out.add_input());
  for (const OnnxPort& port : graph.outputs) fill(port, *out.add_output());
  for (const OnnxConstant& constant : graph.constants) fill(constant, *out.add_initializer());
  for (const OnnxWeight& weight : graph.weights) fill(weight, *out.add_initializer());
  for (const OnnxNode& node : graph.nodes) fill(node, *out.add_node());
  return model;
}

// The library throws; nothing of that leaves here.
Status check(onnx::ModelProto& model, const fs::path& file) {
  try {
    onnx::checker::check_model(file.string());
    onnx::shape_inference::InferShapes(model, onnx::OpSchemaRegistry::Instance(),
                                       onnx::ShapeInferenceOptions(true, 1, true));
  } catch (const std::exception& problem) {
    return failed_error("{}: ONNX's checker refuses what was written, a defect of the export: {}", file.string(),
                        problem.what());
  }
  return {};
}

}  // namespace

int64_t onnx_type(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return onnx::TensorProto::FLOAT;
    case DType::bf16:
      return onnx::TensorProto::BFLOAT16;
    case DType::f16:
      return onnx::TensorProto::FLOAT16;
    case DType::f64:
      return onnx::TensorProto::DOUBLE;
    case DType::i32:
      return onnx::TensorProto::INT32;
    case DType::i64:
      return onnx::TensorProto::INT64;
    case DType::u8:
      return onnx::TensorProto::UINT8;
    case DType::i8:
      return onnx::TensorProto::INT8;
  }
  return onnx::TensorProto::UNDEFINED;
}

Status write_onnx(const OnnxGraph& graph, const fs::path& directory) {
  const fs::path file = directory / kOnnxModelFile;
  onnx::ModelProto model = model_of(graph);
  std::string bytes;
  if (!model.SerializeToString(&bytes))
    return failed_error("{}: the graph is larger than the 2 GB of a protocol buffer", file.string());
  INGOT_TRY(write_file_atomic(file, bytes));
  return check(model, file);
}

}  // namespace ingot
