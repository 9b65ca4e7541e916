#include "ops/sum_squares.h"

namespace ingot {

const OpDef kSumSquares{
    .name = "sum_squares",
    .infer = [](std::span<const Type> inputs, const Attributes&) -> Result<std::vector<Type>> {
      if (inputs.size() != 1) return failed_error("{} inputs, expected 1", inputs.size());
      return std::vector<Type>{{DType::f32, {}}};
    },
    .evaluate =
        [](const EvalContext& context) {
          for (double x : context.inputs[0]->data) context.outputs[0].data[0] += x * x;
        },
    .examples =
        [] {
          return std::vector<OpExample>{
              {{{DType::f32, {3, 5}}}, {}}, {{{DType::f32, {}}}, {}}, {{{DType::f32, {0}}}, {}}};
        },
};

ValueId sum_squares(Builder& builder, ValueId x) {
  return builder.add(kSumSquares, {x});
}

}  // namespace ingot
