#include "ops/embedding_grad.h"

#include "graph/storage.h"

namespace ingot {
namespace {

Result<std::vector<Type>> infer(std::span<const Type> inputs, const Attributes& attributes) {
  const auto& [rows, accumulate] = attributes.as<EmbeddingGradAttributes>();
  const size_t count = accumulate ? 3 : 2;
  if (inputs.size() != count) return failed_error("{} inputs, expected {}", inputs.size(), count);
  const Shape &ids = inputs[0].shape, &dy = inputs[1].shape;
  const bool fits = inputs[0].dtype == DType::i32 && dy.rank() == ids.rank() + 1 &&
                    Shape(dy.dims().first(static_cast<size_t>(ids.rank()))) == ids;
  if (!fits)
    return failed_error("{} and {}, expected i32 [...] and [...,C]", inputs[0].to_string(), inputs[1].to_string());
  const Type out{computed(inputs.back()).dtype, {rows, dy[-1]}};
  if (accumulate && !(inputs[2] == out))
    return failed_error("an accumulator {}, expected {}", inputs[2].to_string(), out.to_string());
  return std::vector<Type>{out};
}

void evaluate(const EvalContext& context) {
  const auto& [rows, accumulate] = context.node.attributes.as<EmbeddingGradAttributes>();
  RefTensor& out = context.outputs[0];
  const int64_t width = out.shape[1];
  if (accumulate) out.data = context.inputs[2]->data;
  const double* dy = context.inputs[1]->data.data();
  for (double id : context.inputs[0]->data) {
    INGOT_CHECK(id >= 0 && id < static_cast<double>(rows), "id {} of a table of {} rows", id, rows);
    for (int64_t i = 0; i < width; ++i) out.data[static_cast<size_t>(static_cast<int64_t>(id) * width + i)] += *dy++;
  }
}

}  // namespace

const OpDef kEmbeddingGrad{
    .name = "embedding_grad",
    .traits = {.in_place = {2}},
    .infer = infer,
    .evaluate = evaluate,
    .parse_attributes = &parse_attributes<EmbeddingGradAttributes>,
    .examples =
        [] {
          return std::vector<OpExample>{{{{DType::i32, {2, 3}}, {DType::f32, {2, 3, 5}}},
                                         EmbeddingGradAttributes{7, false},
                                         {{0, 6, 3, 3, 1, 6}}},
                                        {{{DType::i32, {4}}, {DType::f32, {4, 3}}, {DType::f32, {5, 3}}},
                                         EmbeddingGradAttributes{5, true},
                                         {{4, 4, 0, 4}}}};
        },
};

ValueId embedding_grad(Builder& builder, ValueId ids, ValueId dy, int64_t rows, ValueId accumulator) {
  std::vector<ValueId> inputs{ids, dy};
  if (accumulator != kNone) inputs.push_back(accumulator);
  return builder.add(kEmbeddingGrad, std::move(inputs), EmbeddingGradAttributes{rows, accumulator != kNone});
}

}  // namespace ingot
