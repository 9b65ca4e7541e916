#include "ops/optimizer_step.h"

namespace ingot {

Status check_optimizer_inputs(std::span<const Type> inputs, size_t count, size_t like_param) {
  if (inputs.size() != count)
    return failed_error("{} inputs, expected {}: param, grad, the state, control and clip", inputs.size(), count);
  for (size_t i = 1; i <= 1 + like_param; ++i)
    if (!(inputs[i].shape == inputs[0].shape))
      return failed_error("input {} is {}, the parameter {}", i, inputs[i].to_string(), inputs[0].to_string());
  for (size_t i = count - 2; i < count; ++i)
    if (!(inputs[i] == Type{DType::f32, {3}}))
      return failed_error("input {} is {}, expected f32[3]", i, inputs[i].to_string());
  return {};
}

OpExample optimizer_example(const Type& param, std::vector<OptimizerExampleState> state, Attributes attributes,
                            std::vector<double> control, std::vector<double> clip) {
  const Type three{DType::f32, {3}};
  OpExample example{{param, param}, std::move(attributes), {{}, {}}};
  for (OptimizerExampleState& one : state) {
    example.inputs.push_back(one.type);
    example.values.push_back(std::move(one.values));
  }
  example.inputs.insert(example.inputs.end(), {three, three});
  example.values.push_back(std::move(control));
  example.values.push_back(std::move(clip));
  return example;
}

}  // namespace ingot
