// Any bytes as a safetensors file: an error, or tensors that all lie within it.
#include <cstdlib>

#include "checkpoint/convert.h"
#include "checkpoint/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span file(reinterpret_cast<const std::byte*>(data), size);
  const auto header = ingot::parse_safetensors(file, "input");
  if (!header.ok()) return 0;
  for (const ingot::TensorInfo& info : header->tensors) {
    if (info.offset > size || info.bytes > size - info.offset) std::abort();
    const ingot::ConstTensorView view(file.data() + info.offset, info.dtype, info.shape);
    if (view.bytes() != info.bytes) std::abort();
    if (!ingot::is_float(info.dtype)) continue;
    std::vector<float> values(static_cast<size_t>(info.shape.elements()));
    ingot::convert_to_f32(view, values);
  }
  return 0;
}
