#include "ops/sub.h"

#include "ops/elementwise.h"
#include "ops/neg.h"

namespace ingot {

const OpDef kSub{
    .name = "sub",
    .traits = {.elementwise = true, .in_place = {0}},
    .infer = [](std::span<const Type> inputs, const Attributes&) { return infer_elementwise(inputs, 2); },
    .gradient =
        [](GradientContext& context) {
          Builder& builder = context.builder;
          const ValueId dy = context.output_gradients[0];
          const ValueId da = dy;
          const ValueId db = neg(builder, dy);
          context.input_gradients[0] = sum_to_shape(builder, da, builder.shape(context.input(0)));
          context.input_gradients[1] = sum_to_shape(builder, db, builder.shape(context.input(1)));
        },
    .evaluate = [](const EvalContext& context) { evaluate_binary(context, std::minus<>()); },
    .examples =
        [] {
          return std::vector<OpExample>{{{{DType::f32, {3, 5}}, {DType::f32, {3, 5}}}, {}},
                                        {{{DType::f32, {3, 5}}, {DType::f32, {}}}, {}},
                                        {{{DType::f32, {2, 1, 5}}, {DType::f32, {3, 1}}}, {}}};
        },
};

ValueId sub(Builder& builder, ValueId a, ValueId b) {
  return builder.add(kSub, {a, b});
}

}  // namespace ingot
