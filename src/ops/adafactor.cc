#include "ops/adafactor.h"

#include <algorithm>
#include <cmath>

#include "ops/optimizer_step.h"

namespace ingot {
namespace {

using Data = std::vector<double>;

Result<std::vector<Type>> infer_matrix(std::span<const Type> inputs, const Attributes&) {
  INGOT_TRY(check_optimizer_inputs(inputs, 6, 0));
  const Shape& shape = inputs[0].shape;
  if (shape.rank() != 2) return failed_error("the parameter is {}, expected a matrix", inputs[0].to_string());
  for (int axis = 0; axis < 2; ++axis) {
    const Type& type = inputs[static_cast<size_t>(2 + axis)];
    if (!(type == Type{DType::f32, {shape[axis]}}))
      return failed_error("input {} is {}, expected f32[{}]", 2 + axis, type.to_string(), shape[axis]);
  }
  return std::vector<Type>{inputs[0], inputs[2], inputs[3]};
}

Result<std::vector<Type>> infer_vector(std::span<const Type> inputs, const Attributes&) {
  INGOT_TRY(check_optimizer_inputs(inputs, 5, 1));
  return std::vector<Type>{inputs[0], inputs[2]};
}

double rms(const Data& x) {
  double squares = 0;
  for (const double value : x) squares += value * value;
  return std::sqrt(squares / static_cast<double>(std::max<size_t>(x.size(), 1)));
}

double mean(const Data& x) {
  double sum = 0;
  for (const double value : x) sum += value;
  return sum / static_cast<double>(std::max<size_t>(x.size(), 1));
}

// param' from u, which has not been clipped yet.
void step(const AdafactorAttributes& a, const Data& control, const Data& u, Data& param) {
  const double rate = control[0] * a.learning_rate_scale;
  const double relative = a.relative_step ? std::max(a.smallest_scale, rms(param)) : 1;
  const double size = rate * relative / std::max(1.0, rms(u) / a.threshold);
  for (size_t i = 0; i < param.size(); ++i) param[i] = (1 - rate * a.weight_decay) * param[i] - size * u[i];
}

void evaluate_matrix(const EvalContext& context) {
  const auto& a = context.node.attributes.as<AdafactorAttributes>();
  const Data &grad = context.inputs[1]->data, &control = context.inputs[4]->data, &clip = context.inputs[5]->data;
  Data &param = context.outputs[0].data, &rows = context.outputs[1].data, &columns = context.outputs[2].data;
  param = context.inputs[0]->data, rows = context.inputs[2]->data, columns = context.inputs[3]->data;
  if (clip[1] != 0) return;
  Data row_squares(rows.size()), column_squares(columns.size()), u;
  for (size_t i = 0; i < grad.size(); ++i) {
    const double square = grad[i] * clip[0] * grad[i] * clip[0] + a.eps;
    row_squares[i / columns.size()] += square;
    column_squares[i % columns.size()] += square;
  }
  const auto average = [&](Data& state, const Data& squares, size_t count) {
    for (size_t i = 0; i < state.size(); ++i)
      state[i] = control[1] * state[i] + control[2] * squares[i] / static_cast<double>(count);
  };
  average(rows, row_squares, columns.size());
  average(columns, column_squares, rows.size());
  const double mean_row = mean(rows);
  for (size_t i = 0; i < grad.size(); ++i)
    u.push_back(grad[i] * clip[0] / std::sqrt(rows[i / columns.size()] * columns[i % columns.size()] / mean_row));
  step(a, control, u, param);
}

void evaluate_vector(const EvalContext& context) {
  const auto& a = context.node.attributes.as<AdafactorAttributes>();
  const Data &grad = context.inputs[1]->data, &control = context.inputs[3]->data, &clip = context.inputs[4]->data;
  Data &param = context.outputs[0].data, &v = context.outputs[1].data;
  param = context.inputs[0]->data, v = context.inputs[2]->data;
  if (clip[1] != 0) return;
  Data u;
  for (size_t i = 0; i < grad.size(); ++i) {
    const double g = grad[i] * clip[0];
    v[i] = control[1] * v[i] + control[2] * (g * g + a.eps);
    u.push_back(g / std::sqrt(v[i]));
  }
  step(a, control, u, param);
}

// Values of a state of squares.
Data ramp(int64_t elements) {
  Data values;
  for (int64_t i = 0; i < elements; ++i) values.push_back(0.1 + 0.01 * static_cast<double>(i));
  return values;
}

// Several tiles of rows among them, and steps that are clipped or not.
std::vector<OpExample> matrix_examples() {
  const auto example = [](Shape shape, AdafactorAttributes attributes, Data clip) {
    return optimizer_example({DType::f32, shape},
                             {{{DType::f32, {shape[0]}}, ramp(shape[0])}, {{DType::f32, {shape[1]}}, ramp(shape[1])}},
                             attributes, {0.01, 0.7, 0.3}, std::move(clip));
  };
  return {example({3, 5}, {0.1, 1.0}, {1, 0, 0.5}), example({7, 3}, {0.0, 0.5, true}, {0.25, 0, 4}),
          example({257, 129}, {0.1, 1.0, true, 1e-30, 1e-3, 0.5}, {0.5, 0, 2}), example({3, 5}, {0.1}, {0, 1, 0})};
}

std::vector<OpExample> vector_examples() {
  const auto example = [](Shape shape, AdafactorAttributes attributes, Data clip) {
    const Type type{DType::f32, shape};
    return optimizer_example(type, {{type, ramp(shape.elements())}}, attributes, {0.01, 0.7, 0.3}, std::move(clip));
  };
  return {example({5}, {0.1, 1.0}, {1, 0, 0.5}), example({37}, {0.0, 0.5, true}, {0.25, 0, 4}),
          example({2, 3, 4}, {0.1, 1.0, true, 1e-30, 1e-3, 0.5}, {0.5, 0, 2}), example({5}, {0.1}, {0, 1, 0})};
}

}  // namespace

const OpDef kAdafactor{
    .name = "adafactor",
    .traits = {.in_place = {0, 2, 3}},
    .infer = infer_matrix,
    .evaluate = evaluate_matrix,
    .parse_attributes = &parse_attributes<AdafactorAttributes>,
    .examples = matrix_examples,
};

const OpDef kAdafactorVector{
    .name = "adafactor_vector",
    .traits = {.in_place = {0, 2}},
    .infer = infer_vector,
    .evaluate = evaluate_vector,
    .parse_attributes = &parse_attributes<AdafactorAttributes>,
    .examples = vector_examples,
};

std::array<ValueId, 3> adafactor(Builder& builder, const AdafactorInputs& inputs, AdafactorAttributes attributes) {
  const auto outputs = builder.add_many(
      kAdafactor, {inputs.param, inputs.grad, inputs.rows, inputs.columns, inputs.control, inputs.clip}, attributes);
  return {outputs[0], outputs[1], outputs[2]};
}

std::array<ValueId, 2> adafactor_vector(Builder& builder, const AdafactorVectorInputs& inputs,
                                        AdafactorAttributes attributes) {
  const auto outputs = builder.add_many(kAdafactorVector,
                                        {inputs.param, inputs.grad, inputs.v, inputs.control, inputs.clip}, attributes);
  return {outputs[0], outputs[1]};
}

}  // namespace ingot
