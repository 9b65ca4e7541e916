// OnnxGraph: an ONNX graph as plain data (https://github.com/onnx/onnx/blob/main/docs/IR.md), apart from the protocol
// buffers' classes, which onnx_file.cc alone knows.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "base/dtype.h"

namespace ingot {

inline constexpr int64_t kOnnxOpset = 17;
inline constexpr const char* kOnnxModelFile = "model.onnx";
inline constexpr const char* kOnnxDataFile = "model.onnx.data";

// TensorProto.DataType.
int64_t onnx_type(DType dtype);
inline constexpr int64_t kOnnxBool = 9;

struct OnnxAttribute {
  std::string name;
  std::variant<int64_t, float, std::vector<int64_t>> value;
};

struct OnnxNode {
  std::string op;    // of the default domain
  std::string name;  // unique
  std::vector<std::string> inputs, outputs;
  std::vector<OnnxAttribute> attributes;
};

// An extent that is known, or one that a name stands for.
using OnnxExtent = std::variant<int64_t, std::string>;

// An input or output of the graph.
struct OnnxPort {
  std::string name;
  DType dtype = DType::f32;
  std::vector<OnnxExtent> shape;
};

// A constant inside the model file.
struct OnnxConstant {
  std::string name;
  DType dtype = DType::f32;
  std::vector<int64_t> shape;
  std::string bytes;  // little-endian, row-major
};

// A weight in the data file.
struct OnnxWeight {
  std::string name;
  std::string parameter;    // of the model
  bool transposed = false;  // against the parameter
  DType dtype = DType::f32;
  std::vector<int64_t> shape;  // as it is stored
  uint64_t offset = 0, bytes = 0;
};

struct OnnxGraph {
  std::string name;
  std::vector<OnnxPort> inputs, outputs;
  std::vector<OnnxConstant> constants;
  std::vector<OnnxWeight> weights;
  std::vector<OnnxNode> nodes;  // each behind those whose results it reads
};

}  // namespace ingot
