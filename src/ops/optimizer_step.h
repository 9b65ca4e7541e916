// What the optimizers' ops share.
#pragma once

#include "graph/op.h"

namespace ingot {

// The last two inputs of an optimizer's op are control and clip, f32[3]; of the others the gradient (input 1) has the
// parameter's shape, and so have `like_param` inputs behind it.
Status check_optimizer_inputs(std::span<const Type> inputs, size_t count, size_t like_param);

// The example of an optimizer's op on a parameter of this type: param, grad, the state given, control, clip. `state`
// holds the values of the states that must not be random (empty: random).
struct OptimizerExampleState {
  Type type;
  std::vector<double> values = {};
};
OpExample optimizer_example(const Type& param, std::vector<OptimizerExampleState> state, Attributes attributes,
                            std::vector<double> control, std::vector<double> clip);

}  // namespace ingot
