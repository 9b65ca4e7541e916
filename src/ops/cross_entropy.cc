#include "ops/cross_entropy.h"

#include <algorithm>
#include <cmath>

#include "ops/cross_entropy_grad.h"
#include "ops/div.h"
#include "ops/mul.h"

namespace ingot {
namespace {

Result<std::vector<Type>> infer(std::span<const Type> inputs, const Attributes&) {
  if (inputs.size() != 3) return failed_error("{} inputs, expected 3", inputs.size());
  const Shape& logits = inputs[0].shape;
  if (logits.rank() != 2) return failed_error("logits of shape {}, expected [R,V]", logits.to_string());
  if (inputs[1].dtype != DType::i32 || !(inputs[1].shape == Shape{logits[0]}))
    return failed_error("targets are {}, expected i32[{}]", inputs[1].to_string(), logits[0]);
  if (!(inputs[2] == Type{DType::f32, {}}))
    return failed_error("the scale is {}, expected f32[]", inputs[2].to_string());
  return std::vector<Type>{{DType::f32, {}}};
}

// The loss is linear in the scale; a run's scale is an input without gradient, and what is built for it is then dead.
void gradient(GradientContext& context) {
  Builder& builder = context.builder;
  const ValueId dloss = context.output_gradients[0], scale = context.input(2);
  context.input_gradients[0] = cross_entropy_grad(builder, context.input(0), context.input(1), scale, dloss);
  context.input_gradients[2] = div(builder, mul(builder, dloss, context.output(0)), scale);
}

void evaluate(const EvalContext& context) {
  const RefTensor& logits = *context.inputs[0];
  const int64_t classes = logits.shape[1];
  double sum = 0;
  for (int64_t row = 0; row < logits.shape[0]; ++row) {
    const double target = context.inputs[1]->data[static_cast<size_t>(row)];
    if (target < 0) continue;
    INGOT_CHECK(target < static_cast<double>(classes), "target {} of {} classes", target, classes);
    const double* x = logits.data.data() + row * classes;
    const double largest = *std::max_element(x, x + classes);
    double denominator = 0;
    for (int64_t i = 0; i < classes; ++i) denominator += std::exp(x[i] - largest);
    sum += std::log(denominator) + largest - x[static_cast<int64_t>(target)];
  }
  context.outputs[0].data[0] = sum * context.inputs[2]->data[0];
}

}  // namespace

const OpDef kCrossEntropy{
    .name = "cross_entropy",
    .infer = infer,
    .gradient = gradient,
    .evaluate = evaluate,
    .examples =
        [] {
          return std::vector<OpExample>{
              {{{DType::f32, {3, 5}}, {DType::i32, {3}}, {DType::f32, {}}}, {}, {{}, {4, -100, 0}, {0.25}}},
              {{{DType::f32, {2, 7}}, {DType::i32, {2}}, {DType::f32, {}}}, {}, {{}, {-100, -1}, {1}}}};
        },
};

ValueId cross_entropy(Builder& builder, ValueId logits, ValueId targets, ValueId scale) {
  return builder.add(kCrossEntropy, {logits, targets, scale});
}

}  // namespace ingot
