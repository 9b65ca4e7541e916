// Every differentiable op against central finite differences in double precision, automatically for each example of it.
#include "autodiff/gradient.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/rng.h"
#include "graph/storage.h"
#include "graph/text.h"
#include "ops/cast.h"
#include "ops/interpret.h"
#include "ops/mul.h"
#include "ops/registry.h"
#include "ops/reshape.h"
#include "ops/sum.h"

namespace ingot {
namespace {

using Tensors = std::map<std::string, RefTensor>;

RefTensor random_tensor(const Shape& shape, uint64_t seed, double low, double high) {
  RefTensor tensor{shape, {}};
  const uint64_t key = stream_key(seed, "test");
  for (int64_t i = 0; i < shape.elements(); ++i)
    tensor.data.push_back(low + (high - low) * philox(key, static_cast<uint64_t>(i))[0] * 0x1p-32);
  return tensor;
}

struct Case {
  Graph graph;
  ValueId loss = kNone;
  std::vector<ValueId> inputs;
  Tensors sources;
};

// loss = sum over the op's float outputs, but those that are saved for the gradient, of sum(output · random weights).
Case make_case(const OpDef& op, const OpExample& example) {
  Case test;
  Builder builder(test.graph);
  for (size_t i = 0; i < example.inputs.size(); ++i) {
    const std::string name = "in" + std::to_string(i);
    test.inputs.push_back(builder.parameter(name, example.inputs[i]));
    const Shape& shape = example.inputs[i].shape;
    const bool given = i < example.values.size() && !example.values[i].empty();
    test.sources[name] =
        given ? RefTensor{shape, example.values[i]} : random_tensor(shape, i + 1, example.low, example.high);
  }
  int k = 0;
  std::vector<ValueId> outputs = builder.add_many(op, test.inputs, example.attributes);
  outputs.resize(outputs.size() - static_cast<size_t>(op.traits.saved_outputs));
  for (ValueId output : outputs) {
    if (!is_float(builder.type(output).dtype)) continue;
    const std::string name = "weights" + std::to_string(k++);
    const Shape shape = builder.shape(output);
    const ValueId weights = builder.input(name, {DType::f32, shape});
    test.sources[name] = random_tensor(shape, 77 + static_cast<uint64_t>(k), -1, 1);
    const ValueId product = mul(builder, cast(builder, output, DType::f32), weights);
    const ValueId part = sum(builder, reshape(builder, product, {shape.elements()}), {0});
    test.loss = test.loss == kNone ? part : builder.add(*find_op("add"), {test.loss, part});
  }
  builder.output("loss", test.loss);
  return test;
}

double loss_at(const Case& test, const Tensors& sources) {
  return interpret_results(test.graph, sources).at("loss").data[0];
}

// Rounding is a step function: what flows back through it is tested in lower_precision_test.cc.
bool rounds(const OpDef& op, const OpExample& example) {
  const auto narrow = [](const Type& type) { return is_narrow(type.dtype); };
  return std::ranges::any_of(example.inputs, narrow) ||
         std::ranges::any_of(op.infer(example.inputs, example.attributes).value(), narrow);
}

class OpGradient : public ::testing::TestWithParam<const OpDef*> {};

TEST_P(OpGradient, AgreesWithFiniteDifferences) {
  const OpDef& op = *GetParam();
  ASSERT_NE(op.examples, nullptr) << op.name << " has no examples";
  const auto examples = op.examples();
  ASSERT_FALSE(examples.empty());
  for (const OpExample& example : examples) {
    if (rounds(op, example)) continue;
    const Case forward = make_case(op, example);
    Case test = make_case(op, example);
    std::vector<ValueId> wrt;
    for (size_t i = 0; i < test.inputs.size(); ++i)
      if (is_float(example.inputs[i].dtype)) wrt.push_back(test.inputs[i]);
    const auto gradients = add_gradients(test.graph, test.loss, wrt);
    ASSERT_TRUE(verify_graph(test.graph).ok()) << verify_graph(test.graph).error().message;
    for (size_t i = 0; i < wrt.size(); ++i)
      if (gradients[i] != kNone) test.graph.outputs.push_back({"g" + std::to_string(i), gradients[i]});
    const Tensors results = interpret_results(test.graph, test.sources);
    for (size_t i = 0; i < wrt.size(); ++i) {
      const std::string name = test.graph.source_of(wrt[i])->name;
      RefTensor numeric{test.sources[name].shape, {}};
      double largest = 0;
      for (size_t k = 0; k < test.sources[name].data.size(); ++k) {
        // Richardson's extrapolation of the central difference: error O(h^4).
        const auto central = [&](double h) {
          Tensors moved = forward.sources;
          moved[name].data[k] += h;
          const double up = loss_at(forward, moved);
          moved[name].data[k] -= 2 * h;
          return (up - loss_at(forward, moved)) / (2 * h);
        };
        constexpr double kStep = 1e-3;
        numeric.data.push_back((4 * central(kStep / 2) - central(kStep)) / 3);
        largest = std::max(largest, std::abs(numeric.data.back()));
      }
      if (gradients[i] == kNone) {
        EXPECT_EQ(largest, 0) << op.name << " gives no gradient for input " << i << ", on which its outputs depend";
        continue;
      }
      const auto& analytic = results.at("g" + std::to_string(i)).data;
      ASSERT_EQ(analytic.size(), numeric.data.size());
      for (size_t k = 0; k < analytic.size(); ++k)
        EXPECT_NEAR(analytic[k], numeric.data[k], 1e-6 * std::max(largest, 1e-3))
            << op.name << " " << example.attributes.to_string() << " input " << i << " element " << k;
    }
  }
}

// Ops without a gradient rule must be listed by what they are: gradients themselves, or integers come out, or no float
// goes in.
std::vector<const OpDef*> differentiable_ops() {
  std::vector<const OpDef*> ops;
  for (const OpDef* op : all_ops())
    if (op->gradient != nullptr) ops.push_back(op);
  return ops;
}

INSTANTIATE_TEST_SUITE_P(All, OpGradient, ::testing::ValuesIn(differentiable_ops()),
                         [](const auto& one) { return std::string(one.param->name); });

TEST(AddGradients, SumsTheContributionsOfAllReaders) {
  Graph graph;
  Builder builder(graph);
  const ValueId x = builder.parameter("x", {DType::f32, {2}});
  const ValueId loss = sum(builder, builder.add(*find_op("add"), {mul(builder, x, x), x}), {0});
  const ValueId wrt[] = {x};
  builder.output("g", add_gradients(graph, loss, wrt)[0]);
  graph.outputs.push_back({"loss", loss});
  const auto results = interpret_results(graph, {{"x", {{2}, {3.0, -1.0}}}});
  EXPECT_EQ(results.at("g").data, (std::vector<double>{7.0, -1.0}));
}

TEST(AddGradients, GivesNothingForAValueThatTheLossDoesNotDependOn) {
  Graph graph;
  Builder builder(graph);
  const ValueId x = builder.parameter("x", {DType::f32, {2}}), y = builder.parameter("y", {DType::f32, {2}});
  const ValueId loss = sum(builder, x, {0});
  const ValueId wrt[] = {y};
  EXPECT_EQ(add_gradients(graph, loss, wrt)[0], kNone);
}

}  // namespace
}  // namespace ingot
