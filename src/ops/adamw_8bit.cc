#include "ops/adamw_8bit.h"

#include <algorithm>
#include <cmath>

#include "base/dynamic_map.h"
#include "ops/optimizer_step.h"

namespace ingot {
namespace {

Result<std::vector<Type>> infer(std::span<const Type> inputs, const Attributes&) {
  INGOT_TRY(check_optimizer_inputs(inputs, 8, 2));
  const Type scales{DType::f32, {dynamic_blocks(inputs[0].shape.elements())}};
  for (size_t i = 2; i < 6; ++i) {
    const Type expected = i < 4 ? Type{DType::u8, inputs[0].shape} : scales;
    if (!(inputs[i] == expected))
      return failed_error("input {} is {}, expected {}", i, inputs[i].to_string(), expected.to_string());
  }
  return std::vector<Type>{inputs[0], inputs[2], inputs[3], inputs[4], inputs[5]};
}

double value_of(DynamicMap map, double code) {
  return double{dynamic_values(map)[static_cast<size_t>(code)]};
}

void quantize(DynamicMap map, std::span<const double> numbers, std::span<double> codes, double& scale) {
  scale = 0;
  for (const double x : numbers) scale = std::max(scale, std::abs(x));
  for (size_t i = 0; i < numbers.size(); ++i) codes[i] = dynamic_code(map, scale > 0 ? numbers[i] / scale : 0);
}

void evaluate(const EvalContext& context) {
  const auto& a = context.node.attributes.as<AdamwAttributes>();
  const auto in = [&](size_t i) -> const std::vector<double>& { return context.inputs[i]->data; };
  auto &param = context.outputs[0].data, &m_codes = context.outputs[1].data, &v_codes = context.outputs[2].data,
       &m_scales = context.outputs[3].data, &v_scales = context.outputs[4].data;
  param = in(0), m_codes = in(2), v_codes = in(3), m_scales = in(4), v_scales = in(5);
  const auto &control = in(6), &clip = in(7);
  if (clip[1] != 0) return;
  const double rate = control[0] * a.learning_rate_scale;
  for (size_t block = 0; block < m_scales.size(); ++block) {
    const size_t begin = block * kDynamicBlock, count = std::min<size_t>(kDynamicBlock, param.size() - begin);
    std::vector<double> m(count), v(count);
    for (size_t k = 0; k < count; ++k) {
      const size_t i = begin + k;
      const double g = in(1)[i] * clip[0];
      m[k] = a.beta1 * value_of(DynamicMap::signed_values, m_codes[i]) * m_scales[block] + (1 - a.beta1) * g;
      v[k] = a.beta2 * value_of(DynamicMap::unsigned_values, v_codes[i]) * v_scales[block] + (1 - a.beta2) * g * g;
      param[i] *= 1 - rate * a.weight_decay;
      param[i] -= rate / control[1] * m[k] / (std::sqrt(v[k]) / std::sqrt(control[2]) + a.eps);
    }
    quantize(DynamicMap::signed_values, m, std::span(m_codes).subspan(begin, count), m_scales[block]);
    quantize(DynamicMap::unsigned_values, v, std::span(v_codes).subspan(begin, count), v_scales[block]);
  }
}

std::vector<OpExample> examples() {
  const Shape shape{3, 97};
  const Type w{DType::f32, shape}, codes{DType::u8, shape}, scales{DType::f32, {dynamic_blocks(shape.elements())}};
  std::vector<double> m, v;
  for (int64_t i = 0; i < shape.elements(); ++i) {
    m.push_back(static_cast<double>(i * 89 % 256));
    v.push_back(static_cast<double>(128 + i * 37 % 128));
  }
  const auto example = [&](AdamwAttributes attributes, std::vector<double> clip) {
    return optimizer_example(w, {{codes, m}, {codes, v}, {scales, {0.5, 2}}, {scales, {0.25, 0.125}}}, attributes,
                             {0.01, 0.271, 0.1426}, std::move(clip));
  };
  return {example({0.9, 0.95, 1e-8, 0.1, 1.0}, {1.0, 0.0, 0.5}), example({0.8, 0.99, 1e-6, 0.0, 0.5}, {0.25, 0.0, 4.0}),
          example({0.9, 0.95, 1e-8, 0.1, 1.0}, {0.0, 1.0, 0.0})};
}

}  // namespace

int64_t dynamic_blocks(int64_t elements) {
  return (elements + kDynamicBlock - 1) / kDynamicBlock;
}

const OpDef kAdamw8bit{
    .name = "adamw_8bit",
    .traits = {.in_place = {0, 2, 3, 4, 5}},
    .infer = infer,
    .evaluate = evaluate,
    .parse_attributes = &parse_attributes<AdamwAttributes>,
    .examples = examples,
};

std::array<ValueId, 5> adamw_8bit(Builder& builder, const Adamw8bitInputs& inputs, AdamwAttributes attributes) {
  const auto outputs = builder.add_many(kAdamw8bit,
                                        {inputs.param, inputs.grad, inputs.m_codes, inputs.v_codes, inputs.m_scales,
                                         inputs.v_scales, inputs.control, inputs.clip},
                                        attributes);
  return {outputs[0], outputs[1], outputs[2], outputs[3], outputs[4]};
}

}  // namespace ingot
