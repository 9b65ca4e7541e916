#include "ops/quantized_embedding.h"

namespace ingot {
namespace {

Result<std::vector<Type>> infer(std::span<const Type> inputs, const Attributes& attributes) {
  if (inputs.size() != 3) return failed_error("{} inputs, expected values, scales and ids", inputs.size());
  INGOT_TRY(check_quantized(inputs[0], inputs[1], attributes.as<QuantizedAttributes>()));
  const Shape& ids = inputs[2].shape;
  if (inputs[2].dtype != DType::i32 || ids.rank() >= Shape::kMaxRank)
    return failed_error("{}, expected i32 ids", inputs[2].to_string());
  std::vector<int64_t> dims(ids.begin(), ids.end());
  dims.push_back(inputs[0].shape[1]);
  return std::vector<Type>{{DType::f32, Shape(dims)}};
}

void evaluate(const EvalContext& context) {
  const RefTensor &values = *context.inputs[0], &scales = *context.inputs[1], &ids = *context.inputs[2];
  const int64_t group = context.node.attributes.as<QuantizedAttributes>().group;
  const int64_t width = values.shape[1], groups = scales.shape[1];
  auto to = context.outputs[0].data.begin();
  for (const double id : ids.data) {
    INGOT_CHECK(id >= 0 && id < static_cast<double>(values.shape[0]), "id {} of a table of {} rows", id,
                values.shape[0]);
    const auto row = static_cast<int64_t>(id);
    for (int64_t c = 0; c < width; ++c)
      *to++ = values.data[static_cast<size_t>(row * width + c)] *
              scales.data[static_cast<size_t>(row * groups + c / group)];
  }
}

std::vector<OpExample> examples() {
  std::vector<double> values;
  for (int i = 0; i < 5 * 20; ++i) values.push_back(i * 53 % 255 - 127);
  return {{{quantized_values_type(5, 20), quantized_scales_type(5, 20, 16), {DType::i32, {2, 2}}},
           QuantizedAttributes{16},
           {values, {}, {4, 0, 2, 2}}}};
}

}  // namespace

const OpDef kQuantizedEmbedding{
    .name = "quantized_embedding",
    .infer = infer,
    .evaluate = evaluate,
    .parse_attributes = &parse_attributes<QuantizedAttributes>,
    .examples = examples,
};

}  // namespace ingot
