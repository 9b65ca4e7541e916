// Writing an OnnxGraph as a file.
#pragma once

#include "base/files.h"
#include "export/onnx_graph.h"

namespace ingot {

// Writes model.onnx into `directory`, where the data file stands already, and has ONNX's own library check it: its
// checker, and its inference of types and shapes, which must agree with what the graph says of its outputs. The same
// graph gives the same bytes. Error (failed): the file cannot be written, or does not stand the check.
Status write_onnx(const OnnxGraph& graph, const fs::path& directory);

}  // namespace ingot
