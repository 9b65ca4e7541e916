#include "ops/cast.h"

#include <cmath>

#include "graph/storage.h"
#include "ops/elementwise.h"

namespace ingot {

const OpDef kCast{
    .name = "cast",
    .traits = {.elementwise = true},
    .infer = [](std::span<const Type> inputs, const Attributes& attributes) -> Result<std::vector<Type>> {
      INGOT_ASSIGN(std::vector<Type> types, infer_elementwise(inputs, 1));
      types[0].dtype = attributes.as<CastAttributes>().dtype;
      return types;
    },
    .gradient =
        [](GradientContext& context) {
          const DType from = context.builder.type(context.input(0)).dtype;
          const DType to = context.op_node().attributes.as<CastAttributes>().dtype;
          if (is_float(from) && is_float(to))
            context.input_gradients[0] = cast(context.builder, context.output_gradients[0], from);
        },
    .evaluate =
        [](const EvalContext& context) {
          const DType to = context.node.attributes.as<CastAttributes>().dtype;
          evaluate_unary(context, [to](double x) { return is_float(to) ? stored(x, to) : std::trunc(x); });
        },
    .parse_attributes = &parse_attributes<CastAttributes>,
    .examples =
        [] {
          return std::vector<OpExample>{{{{DType::f32, {3, 5}}}, CastAttributes{DType::bf16}},
                                        {{{DType::bf16, {7}}}, CastAttributes{DType::f32}},
                                        {{{DType::f32, {2, 3}}}, CastAttributes{DType::f16}},
                                        {{{DType::f16, {2, 3}}}, CastAttributes{DType::f32}},
                                        {{{DType::i32, {3}}}, CastAttributes{DType::f32}, {{-2, 0, 5}}}};
        },
};

ValueId cast(Builder& builder, ValueId x, DType dtype) {
  if (builder.type(x).dtype == dtype) return x;
  return builder.add(kCast, {x}, CastAttributes{dtype});
}

}  // namespace ingot
