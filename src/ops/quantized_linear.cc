#include "ops/quantized_linear.h"

namespace ingot {
namespace {

Result<std::vector<Type>> infer(std::span<const Type> inputs, const Attributes& attributes) {
  if (inputs.size() != 3) return failed_error("{} inputs, expected x, values and scales", inputs.size());
  INGOT_TRY(check_quantized(inputs[1], inputs[2], attributes.as<QuantizedAttributes>()));
  const Shape &x = inputs[0].shape, &values = inputs[1].shape;
  if (inputs[0].dtype != DType::f32 || x.rank() < 1 || x[-1] != values[1])
    return failed_error("x {} for a weight {}", inputs[0].to_string(), inputs[1].to_string());
  std::vector<int64_t> dims(x.begin(), x.end());
  dims.back() = values[0];
  return std::vector<Type>{{DType::f32, Shape(dims)}};
}

void evaluate(const EvalContext& context) {
  const RefTensor &x = *context.inputs[0], &values = *context.inputs[1], &scales = *context.inputs[2];
  const int64_t group = context.node.attributes.as<QuantizedAttributes>().group;
  const int64_t n = values.shape[0], k = values.shape[1], groups = scales.shape[1];
  const auto at = [](const RefTensor& tensor, int64_t i) { return tensor.data[static_cast<size_t>(i)]; };
  for (int64_t row = 0; row < x.shape.elements() / std::max<int64_t>(k, 1); ++row)
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (int64_t p = 0; p < k; ++p)
        sum += at(x, row * k + p) * at(values, j * k + p) * at(scales, j * groups + p / group);
      context.outputs[0].data[static_cast<size_t>(row * n + j)] = sum;
    }
}

std::vector<OpExample> examples() {
  const auto example = [](Shape x, int64_t outputs, int64_t group) {
    const int64_t inputs = x[-1];
    std::vector<double> values;
    for (int64_t i = 0; i < outputs * inputs; ++i) values.push_back(static_cast<double>(i * 37 % 255 - 127));
    return OpExample{
        {{DType::f32, x}, quantized_values_type(outputs, inputs), quantized_scales_type(outputs, inputs, group)},
        QuantizedAttributes{group},
        {{}, values, {}}};
  };
  return {example({2, 3, 40}, 5, 16), example({1, 64}, 7, 64), example({3, 1}, 2, 32)};
}

}  // namespace

Type quantized_values_type(int64_t outputs, int64_t inputs) {
  return {DType::i8, {outputs, inputs}};
}

Type quantized_scales_type(int64_t outputs, int64_t inputs, int64_t group) {
  return {DType::f32, {outputs, (inputs + group - 1) / group}};
}

Status check_quantized(const Type& values, const Type& scales, const QuantizedAttributes& attributes) {
  if (attributes.group < 16 || attributes.group % 16 != 0)
    return failed_error("groups of {}, expected a multiple of 16", attributes.group);
  if (values.dtype != DType::i8 || values.shape.rank() != 2)
    return failed_error("values {}, expected i8[N,K]", values.to_string());
  const Type expected = quantized_scales_type(values.shape[0], values.shape[1], attributes.group);
  if (!(scales == expected)) return failed_error("scales {}, expected {}", scales.to_string(), expected.to_string());
  return {};
}

const OpDef kQuantizedLinear{
    .name = "quantized_linear",
    .traits = {.product = true},
    .infer = infer,
    .evaluate = evaluate,
    .parse_attributes = &parse_attributes<QuantizedAttributes>,
    .examples = examples,
};

}  // namespace ingot
