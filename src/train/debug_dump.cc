#include "train/debug_dump.h"

#include <algorithm>

#include "base/files.h"
#include "base/glob.h"
#include "base/log.h"
#include "checkpoint/safetensors_writer.h"
#include "kernels/reduce/reduce.h"

namespace ingot {

DebugDump::DebugDump(const DebugSection& section, int64_t step) : section_(section), step_(step) {
  active_ =
      !section.dump.empty() && (section.steps.empty() || std::ranges::find(section.steps, step) != section.steps.end());
}

void DebugDump::add(const NodeEvent& event) {
  if (!active_) return;
  for (size_t i = 0; i < event.node.outputs.size(); ++i) {
    std::string name = fmt::format("{}/{}", event.node.path, event.node.op->name);
    if (event.node.outputs.size() > 1) name += fmt::format(".{}", i);
    if (std::ranges::none_of(section_.dump, [&](const std::string& pattern) { return glob_match(pattern, name); }))
      continue;
    if (const int count = ++seen_[name]; count > 1) name += fmt::format("#{}", count);
    const ConstTensorView view = event.output(i);
    tensors_.push_back({name, view.dtype, view.shape, {view.data, view.data + view.bytes()}});
  }
}

Status DebugDump::write(const fs::path& directory) const {
  if (!active_) return {};
  if (tensors_.empty()) {
    log_warning("debug.dump matches no tensor of step {}", step_);
    return {};
  }
  INGOT_TRY(ingot::create_directories(directory));
  std::vector<TensorInfo> infos;
  for (const Tensor& tensor : tensors_) infos.push_back({tensor.name, tensor.dtype, tensor.shape, 0, 0});
  INGOT_ASSIGN(SafetensorsWriter writer,
               SafetensorsWriter::create(directory / fmt::format("step-{:08}.safetensors", step_), std::move(infos)));
  std::vector<std::string> order;
  for (const TensorInfo& info : writer.order()) order.push_back(info.name);
  for (const std::string& name : order) {
    const auto tensor = std::ranges::find(tensors_, name, &Tensor::name);
    INGOT_TRY(writer.write(name, std::span(tensor->bytes)));
  }
  return writer.finish();
}

std::string describe_non_finite(const NodeEvent& event) {
  for (size_t i = 0; i < event.node.outputs.size(); ++i) {
    const ConstTensorView view = event.output(i);
    if (view.dtype != DType::f32 || event.node.op->name == "mask_scores")
      continue;  // whose fill is -infinity by design
    const int64_t at = kernels::first_nonfinite(view.as<float>(), view.shape.elements());
    if (at < 0) continue;
    return fmt::format("the op {} at \"{}\": element {} of its output {} {} is {}", event.node.op->name,
                       event.node.path, at, i, view.shape.to_string(), view.as<float>()[at]);
  }
  return "";
}

}  // namespace ingot
