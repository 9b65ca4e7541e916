#include "ops/embedding.h"

#include "ops/embedding_grad.h"

namespace ingot {
namespace {

Result<std::vector<Type>> infer(std::span<const Type> inputs, const Attributes&) {
  if (inputs.size() != 2) return failed_error("{} inputs, expected 2", inputs.size());
  const Shape &table = inputs[0].shape, &ids = inputs[1].shape;
  if (table.rank() != 2 || inputs[1].dtype != DType::i32 || ids.rank() >= Shape::kMaxRank)
    return failed_error("{} and {}, expected a table [V,C] and i32 ids", inputs[0].to_string(), inputs[1].to_string());
  std::vector<int64_t> dims(ids.begin(), ids.end());
  dims.push_back(table[1]);
  return std::vector<Type>{{inputs[0].dtype, Shape(dims)}};
}

void evaluate(const EvalContext& context) {
  const RefTensor &table = *context.inputs[0], &ids = *context.inputs[1];
  auto to = context.outputs[0].data.begin();
  for (double id : ids.data) {
    INGOT_CHECK(id >= 0 && id < static_cast<double>(table.shape[0]), "id {} of a table of {} rows", id, table.shape[0]);
    to = std::copy_n(table.data.begin() + static_cast<int64_t>(id) * table.shape[1], table.shape[1], to);
  }
}

}  // namespace

const OpDef kEmbedding{
    .name = "embedding",
    .infer = infer,
    .gradient =
        [](GradientContext& context) {
          context.input_gradients[0] = embedding_grad(context.builder, context.input(1), context.output_gradients[0],
                                                      context.builder.shape(context.input(0))[0]);
        },
    .evaluate = evaluate,
    .examples =
        [] {
          return std::vector<OpExample>{{{{DType::f32, {7, 5}}, {DType::i32, {2, 3}}}, {}, {{}, {0, 6, 3, 3, 1, 6}}},
                                        {{{DType::f32, {3, 1}}, {DType::i32, {4}}}, {}, {{}, {2, 2, 0, 2}}}};
        },
};

ValueId embedding(Builder& builder, ValueId table, ValueId ids) {
  return builder.add(kEmbedding, {table, ids});
}

}  // namespace ingot
