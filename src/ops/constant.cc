#include "ops/constant.h"

namespace ingot {
namespace {

Result<std::vector<Type>> infer(std::span<const Type> inputs, const Attributes& attributes) {
  const auto& constant = attributes.as<ConstantAttributes>();
  if (!inputs.empty()) return failed_error("a constant has no inputs");
  if (constant.shape.size() > Shape::kMaxRank)
    return failed_error("a shape of {} dimensions, at most {}", constant.shape.size(), Shape::kMaxRank);
  const Shape shape(constant.shape);
  if (constant.values.size() != 1 && static_cast<int64_t>(constant.values.size()) != shape.elements())
    return failed_error("{} values for a constant of shape {}", constant.values.size(), shape.to_string());
  return std::vector<Type>{{constant.dtype, shape}};
}

void evaluate(const EvalContext& context) {
  const auto& values = context.node.attributes.as<ConstantAttributes>().values;
  auto& out = context.outputs[0].data;
  if (values.size() == 1)
    std::fill(out.begin(), out.end(), values[0]);
  else
    out = values;
}

}  // namespace

const OpDef kConstant{
    .name = "constant",
    .infer = infer,
    .evaluate = evaluate,
    .parse_attributes = &parse_attributes<ConstantAttributes>,
    .examples =
        [] {
          return std::vector<OpExample>{{{}, ConstantAttributes{DType::f32, {2, 3}, {0.5}}},
                                        {{}, ConstantAttributes{DType::i32, {3}, {1, 2, 3}}}};
        },
};

ValueId constant(Builder& builder, double value, const Shape& shape, DType dtype) {
  return constant(builder, std::vector{value}, shape, dtype);
}
ValueId constant(Builder& builder, std::vector<double> values, const Shape& shape, DType dtype) {
  return builder.add(kConstant, {}, ConstantAttributes{dtype, {shape.begin(), shape.end()}, std::move(values)});
}

}  // namespace ingot
