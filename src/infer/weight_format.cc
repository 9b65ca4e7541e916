#include "infer/weight_format.h"

#include <atomic>
#include <vector>

#include "checkpoint/convert.h"
#include "infer/generator.h"
#include "kernels/layout/layout.h"
#include "kernels/quantized/quantized.h"
#include "passes/quantize_weights.h"
#include "passes/transpose_weights.h"
#include "train/model_directory.h"

namespace ingot {
namespace {

constexpr int64_t kRowsATile = 64;

// One weight's numbers as 8-bit values and scales.
Status quantize_into(const QuantizedName& name, const float* weight, const TensorView& values, const TensorView& scales,
                     const ThreadPool& pool) {
  const int64_t outputs = values.shape[0], inputs = values.shape[1];
  const int64_t output_stride = name.transposed ? 1 : inputs, input_stride = name.transposed ? outputs : 1;
  std::atomic<bool> finite = true;
  pool.run((outputs + kRowsATile - 1) / kRowsATile, [&](int64_t tile, int) {
    const int64_t begin = tile * kRowsATile, end = std::min(outputs, begin + kRowsATile);
    if (!kernels::quantize(weight, output_stride, input_stride, inputs, kQuantizedGroup, values.as<int8_t>(),
                           scales.as<float>(), begin, end))
      finite = false;
  });
  if (finite) return {};
  return input_error("tensor \"{}\" holds numbers that are not finite, which 8-bit weights cannot be; use fp32 weights",
                     name.parameter);
}

// A weight [inputs, outputs] as [outputs, inputs].
void transpose_into(const float* weight, const TensorView& to, const ThreadPool& pool) {
  const int64_t outputs = to.shape[0], inputs = to.shape[1];
  pool.run((outputs + kRowsATile - 1) / kRowsATile, [&](int64_t tile, int) {
    const int64_t begin = tile * kRowsATile, end = std::min(outputs, begin + kRowsATile);
    kernels::transpose(weight + begin, outputs, to.as<float>() + begin * inputs, inputs, inputs, end - begin,
                       sizeof(float));
  });
}

// The names of the weights that are kept in 8 bits.
Result<std::vector<QuantizedName>> quantized_names(const Model& model) {
  PassContext passes;
  INGOT_ASSIGN(const Graph graph, generation_graph(model, {}, WeightFormat::int8, passes));
  std::vector<QuantizedName> names;
  for (const Source& source : graph.sources)
    if (auto name = parse_quantized_name(source.name)) names.push_back(std::move(*name));
  return names;
}

}  // namespace

Result<WeightFormat> weight_format_from(std::string_view name) {
  if (name == "fp32") return WeightFormat::fp32;
  if (name == "int8") return WeightFormat::int8;
  return usage_error("--weights {}: expected fp32 or int8", name);
}

Status load_weights_as_kept(const fs::path& directory, const Model& model, const Arena& arena, const ThreadPool& pool) {
  std::vector<float> plain;
  return for_each_weight(directory, model, [&](const std::string& parameter, const ConstTensorView& tensor) -> Status {
    fill_weight(arena, parameter, tensor);
    const auto is_kept = [&](const std::string& name) { return arena.variables().find(name) != nullptr; };
    const auto in_fp32 = [&]() -> const float* {
      const bool lies_right = reinterpret_cast<uintptr_t>(tensor.data) % alignof(float) == 0;
      if (tensor.dtype == DType::f32 && lies_right) return reinterpret_cast<const float*>(tensor.data);
      plain.resize(static_cast<size_t>(tensor.shape.elements()));
      convert_to_f32(tensor, plain);
      return plain.data();
    };
    if (const std::string name = transposed_name(parameter); is_kept(name))
      transpose_into(in_fp32(), arena.variable(name), pool);
    for (const bool transposed : {false, true}) {
      const QuantizedName name{parameter, transposed};
      if (!is_kept(name.values())) continue;
      INGOT_TRY(quantize_into(name, in_fp32(), arena.variable(name.values()), arena.variable(name.scales()), pool));
    }
    return {};
  });
}

Status round_weights_to_int8(const Model& model, const Arena& arena, const ThreadPool& pool) {
  INGOT_ASSIGN(const std::vector<QuantizedName> names, quantized_names(model));
  for (const QuantizedName& name : names) {
    const TensorView weight = arena.variable(name.parameter);
    const int64_t outputs = weight.shape[name.transposed ? 1 : 0], inputs = weight.shape[name.transposed ? 0 : 1];
    const int64_t groups = kernels::groups_of(inputs, kQuantizedGroup);
    std::vector<int8_t> values(static_cast<size_t>(outputs * inputs));
    std::vector<float> scales(static_cast<size_t>(outputs * groups));
    INGOT_TRY(quantize_into(name, weight.as<float>(),
                            {reinterpret_cast<std::byte*>(values.data()), DType::i8, {outputs, inputs}},
                            {reinterpret_cast<std::byte*>(scales.data()), DType::f32, {outputs, groups}}, pool));
    auto* out = weight.as<float>();
    for (int64_t j = 0; j < outputs; ++j)
      for (int64_t p = 0; p < inputs; ++p)
        out[name.transposed ? p * outputs + j : j * inputs + p] =
            scales[static_cast<size_t>(j * groups + p / kQuantizedGroup)] * values[static_cast<size_t>(j * inputs + p)];
  }
  return {};
}

}  // namespace ingot
