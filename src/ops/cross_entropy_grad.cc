#include "ops/cross_entropy_grad.h"

#include <algorithm>
#include <cmath>

#include "graph/storage.h"

namespace ingot {
namespace {

Result<std::vector<Type>> infer(std::span<const Type> inputs, const Attributes&) {
  if (inputs.size() != 4) return failed_error("{} inputs, expected 4", inputs.size());
  const Shape& logits = inputs[0].shape;
  if (logits.rank() != 2) return failed_error("logits of shape {}, expected [R,V]", logits.to_string());
  if (inputs[1].dtype != DType::i32 || !(inputs[1].shape == Shape{logits[0]}))
    return failed_error("targets are {}, expected i32[{}]", inputs[1].to_string(), logits[0]);
  const Type scalar{DType::f32, {}};
  if (!(inputs[2] == scalar) || !(inputs[3] == scalar))
    return failed_error("scale and dloss are {} and {}, expected f32[]", inputs[2].to_string(), inputs[3].to_string());
  return std::vector<Type>{computed(inputs[0])};
}

void evaluate(const EvalContext& context) {
  const RefTensor& logits = *context.inputs[0];
  const int64_t classes = logits.shape[1];
  const double scale = context.inputs[2]->data[0] * context.inputs[3]->data[0];
  for (int64_t row = 0; row < logits.shape[0]; ++row) {
    const double target = context.inputs[1]->data[static_cast<size_t>(row)];
    if (target < 0) continue;
    INGOT_CHECK(target < static_cast<double>(classes), "target {} of {} classes", target, classes);
    const double* x = logits.data.data() + row * classes;
    double* dx = context.outputs[0].data.data() + row * classes;
    const double largest = *std::max_element(x, x + classes);
    double denominator = 0;
    for (int64_t i = 0; i < classes; ++i) denominator += dx[i] = std::exp(x[i] - largest);
    for (int64_t i = 0; i < classes; ++i) dx[i] *= scale / denominator;
    dx[static_cast<int64_t>(target)] -= scale;
  }
}

}  // namespace

const OpDef kCrossEntropyGrad{
    .name = "cross_entropy_grad",
    .traits = {.in_place = {0}},
    .infer = infer,
    .evaluate = evaluate,
    .examples =
        [] {
          return std::vector<OpExample>{{{{DType::f32, {3, 5}}, {DType::i32, {3}}, {DType::f32, {}}, {DType::f32, {}}},
                                         {},
                                         {{}, {4, -100, 0}, {0.25}, {2}}}};
        },
};

ValueId cross_entropy_grad(Builder& builder, ValueId logits, ValueId targets, ValueId scale, ValueId dloss) {
  return builder.add(kCrossEntropyGrad, {logits, targets, scale, dloss});
}

}  // namespace ingot
