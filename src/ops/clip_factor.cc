#include "ops/clip_factor.h"

#include <algorithm>
#include <cmath>

namespace ingot {
namespace {

Result<std::vector<Type>> infer(std::span<const Type> inputs, const Attributes& attributes) {
  const auto& a = attributes.as<ClipFactorAttributes>();
  if (inputs.empty()) return failed_error("no inputs, expected parts and the gradient scale");
  for (const Type& type : inputs)
    if (!(type == Type{DType::f32, {}})) return failed_error("an input of type {}, expected f32[]", type.to_string());
  const auto parts = static_cast<int64_t>(inputs.size()) - 1;
  for (int64_t member : a.members)
    if (member < 0 || member >= parts) return failed_error("member {} of {} parts", member, parts);
  if (!(a.max_norm >= 0)) return failed_error("max_norm {}, expected at least 0", a.max_norm);
  return std::vector<Type>{{DType::f32, {3}}};
}

void evaluate(const EvalContext& context) {
  const auto& a = context.node.attributes.as<ClipFactorAttributes>();
  double squares = 0;
  for (int64_t member : a.members) squares += context.inputs[static_cast<size_t>(member)]->data[0];
  const auto parts = context.inputs.first(context.inputs.size() - 1);
  const bool skip = std::ranges::any_of(parts, [](const RefTensor* part) { return !std::isfinite(part->data[0]); });
  const double gradient_scale = context.inputs.back()->data[0];
  const double norm = std::sqrt(squares) / gradient_scale;
  const double scale = a.max_norm == 0 ? 1.0 : std::min(1.0, a.max_norm / (norm + 1e-6));
  context.outputs[0].data = {skip ? 0.0 : scale / gradient_scale, skip ? 1.0 : 0.0, norm};
}

std::vector<OpExample> examples() {
  const Type part{DType::f32, {}}, scale = part;
  return {{{part, part, part, scale}, ClipFactorAttributes{1.0, {0, 2}}, {{4.0}, {9.0}, {0.5}, {1.0}}},
          {{part, part, scale}, ClipFactorAttributes{10.0, {0, 1}}, {{4.0}, {9.0}, {1.0}}},
          {{part, part, scale}, ClipFactorAttributes{0.01, {0, 1}}, {{4.0}, {9.0}, {32.0}}},
          {{part, part, scale}, ClipFactorAttributes{10.0, {1}}, {{4.0}, {9.0}, {0.3}}},
          {{part, scale}, ClipFactorAttributes{0.0, {0}}, {{4.0}, {1.0}}},
          {{part, part, scale}, ClipFactorAttributes{1.0, {0}}, {{4.0}, {std::nan("")}, {8.0}}}};
}

}  // namespace

const OpDef kClipFactor{
    .name = "clip_factor",
    .infer = infer,
    .evaluate = evaluate,
    .parse_attributes = &parse_attributes<ClipFactorAttributes>,
    .examples = examples,
};

ValueId clip_factor(Builder& builder, std::vector<ValueId> parts, ValueId gradient_scale,
                    ClipFactorAttributes attributes) {
  parts.push_back(gradient_scale);
  return builder.add(kClipFactor, std::move(parts), std::move(attributes));
}

}  // namespace ingot
