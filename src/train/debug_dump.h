// Looking into a step: chosen tensors written to a file, and the first op that made a NaN or an infinity.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "runtime/program.h"
#include "train/config.h"

namespace ingot {

// The tensors of one step that `debug.dump` names: patterns on "PATH/OP" or "PATH/OP.OUTPUT", PATH being the place in
// the model ("model.layers.0.self_attn/attention"). A name that occurs again within the step gets "#2", "#3", …
class DebugDump {
 public:
  DebugDump(const DebugSection& section, int64_t step);
  bool active() const { return active_; }
  void add(const NodeEvent& event);
  // Writes what was collected as directory/step-N.safetensors, in the format of the references of `ingot verify`;
  // nothing where the step is not to be dumped.
  Status write(const std::filesystem::path& directory) const;

 private:
  const DebugSection& section_;
  int64_t step_;
  bool active_;
  struct Tensor {
    std::string name;
    DType dtype;
    Shape shape;
    std::vector<std::byte> bytes;
  };
  std::vector<Tensor> tensors_;
  std::map<std::string, int> seen_;
};

// The op, place and element of a non-finite value among a node's float outputs, in words; empty where there is none.
std::string describe_non_finite(const NodeEvent& event);

}  // namespace ingot
