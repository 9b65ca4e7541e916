#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "base/rng.h"
#include "nn/attention.h"
#include "nn/linear.h"
#include "nn/mlp.h"
#include "nn/norm.h"
#include "nn/positions.h"
#include "nn/softcap.h"
#include "ops/interpret.h"

namespace ingot {
namespace {

RefTensor random_tensor(const Shape& shape, uint64_t seed) {
  RefTensor tensor{shape, {}};
  for (int64_t i = 0; i < shape.elements(); ++i)
    tensor.data.push_back(normal_at(stream_key(seed, "test"), static_cast<uint64_t>(i)));
  return tensor;
}

TEST(Linear, BothLayoutsOfAWeightGiveTheSame) {
  Graph graph;
  Builder builder(graph);
  const ValueId x = builder.input("x", {DType::f32, {2, 3}});
  builder.parameter("a.weight", {DType::f32, {3, 2}});
  builder.parameter("a.bias", {DType::f32, {2}});
  builder.parameter("b.weight", {DType::f32, {2, 3}});
  const Weights weights(graph);
  builder.output("a", linear(builder, x, linear_weights(weights, "a", WeightLayout::in_out)));
  builder.output("b", linear(builder, x, linear_weights(weights, "b", WeightLayout::out_in)));
  const auto results = interpret_results(graph, {{"x", {{2, 3}, {1, 0, 2, 0, 1, -1}}},
                                                 {"a.weight", {{3, 2}, {1, 2, 3, 4, 5, 6}}},
                                                 {"a.bias", {{2}, {10, 20}}},
                                                 {"b.weight", {{2, 3}, {1, 3, 5, 2, 4, 6}}}});
  EXPECT_EQ(results.at("a").data, (std::vector<double>{21, 34, 8, 18}));
  EXPECT_EQ(results.at("b").data, (std::vector<double>{11, 14, -2, -2}));
}

TEST(Weights, AMissingNameIsABugUnlessItIsOptional) {
  Graph graph;
  Builder builder(graph);
  const ValueId weight = builder.parameter("h.0.fc.weight", {DType::f32, {2}});
  const Weights weights = Weights(graph).under("h.0");
  EXPECT_EQ(weights("fc.weight"), weight);
  EXPECT_EQ(weights.optional("fc.bias"), kNone);
  EXPECT_THROW(weights("fc.bias"), BugError);
}

TEST(SinusoidalPositions, AreSinesThenCosines) {
  Graph graph;
  Builder builder(graph);
  builder.output("y", sinusoidal_positions(builder, builder.input("positions", {DType::i32, {2, 2}}), 6));
  const std::vector<double> positions{0, 1, 7, 400};
  const auto y = interpret_results(graph, {{"positions", {{2, 2}, positions}}}).at("y");
  ASSERT_EQ(y.shape, (Shape{2, 2, 6}));
  for (size_t p = 0; p < 4; ++p)
    for (size_t i = 0; i < 3; ++i) {
      const double angle = positions[p] * std::pow(10000.0, -2.0 * static_cast<double>(i) / 6);
      EXPECT_NEAR(y.data[p * 6 + i], std::sin(angle), 1e-12);
      EXPECT_NEAR(y.data[p * 6 + 3 + i], std::cos(angle), 1e-12);
    }
}

TEST(RotaryFrequencies, Llama3KeepsTheFastAndSlowsTheSlow) {
  RotarySettings settings{500000, RotaryScaling::llama3, 8, 1, 4, 8192};
  const auto scaled = rotary_frequencies(settings, 128);
  settings.scaling = RotaryScaling::none;
  const auto plain = rotary_frequencies(settings, 128);
  ASSERT_EQ(plain.size(), 64u);
  EXPECT_EQ(plain[0], 1);
  EXPECT_EQ(scaled[0], 1);
  EXPECT_DOUBLE_EQ(scaled[63], plain[63] / 8);
  for (size_t i = 0; i < 64; ++i) {
    const double wavelength = 2 * std::numbers::pi / plain[i], ratio = plain[i] / scaled[i];
    if (wavelength < 2048) {
      EXPECT_EQ(ratio, 1);
    } else if (wavelength > 8192) {
      EXPECT_DOUBLE_EQ(ratio, 8);
    } else {
      EXPECT_TRUE(ratio > 1 && ratio < 8) << ratio;
    }
  }
}

// Queries of a group's heads with equal content attend alike; the first token sees itself alone.
TEST(Attend, GroupedHeadsShareKeysAndTheMaskIsCausal) {
  Graph graph;
  Builder builder(graph);
  const ValueId q = builder.input("q", {DType::f32, {1, 3, 4, 2}}), k = builder.input("k", {DType::f32, {1, 3, 2, 2}});
  const ValueId v = builder.input("v", {DType::f32, {1, 3, 2, 2}});
  const AttentionContext context{builder.input("first", {DType::i32, {1, 3}})};
  builder.output("y", attend(builder, q, k, v, context, {0.5}));
  RefTensor same{{1, 3, 4, 2}, std::vector<double>(24, 0.75)};
  const RefTensor values = random_tensor({1, 3, 2, 2}, 2);
  const auto y =
      interpret_results(
          graph, {{"q", same}, {"k", random_tensor({1, 3, 2, 2}, 1)}, {"v", values}, {"first", {{1, 3}, {0, 0, 2}}}})
          .at("y");
  ASSERT_EQ(y.shape, (Shape{1, 3, 4, 2}));
  for (size_t t = 0; t < 3; ++t)
    for (size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(y.data[t * 8 + i], y.data[t * 8 + 2 + i]);
      EXPECT_EQ(y.data[t * 8 + 4 + i], y.data[t * 8 + 6 + i]);
    }
  for (size_t t : {size_t{0}, size_t{2}})  // the third token begins a document
    for (size_t i = 0; i < 2; ++i) EXPECT_DOUBLE_EQ(y.data[t * 8 + i], values.data[t * 4 + i]);
}

TEST(Norm, MayMultiplyByOneMoreThanItsWeight) {
  Graph graph;
  Builder builder(graph);
  const ValueId x = builder.input("x", {DType::f32, {1, 2}});
  builder.parameter("n.weight", {DType::f32, {2}});
  builder.output("y", norm(builder, x, Weights(graph), "n", NormKind::rms_norm, 0, true));
  const auto y = interpret_results(graph, {{"x", {{1, 2}, {1, 7}}}, {"n.weight", {{2}, {0, 0.5}}}}).at("y").data;
  EXPECT_DOUBLE_EQ(y[0], 1.0 / 5);
  EXPECT_DOUBLE_EQ(y[1], 7.0 / 5 * 1.5);
}

TEST(Softcap, KeepsSmallNumbersAndBoundsLargeOnes) {
  Graph graph;
  Builder builder(graph);
  const ValueId x = builder.input("x", {DType::f32, {3}});
  EXPECT_EQ(softcap(builder, x, 0), x);
  builder.output("y", softcap(builder, x, 30));
  const auto y = interpret_results(graph, {{"x", {{3}, {0.01, -25, 1e4}}}}).at("y").data;
  EXPECT_NEAR(y[0], 0.01, 1e-8);
  EXPECT_DOUBLE_EQ(y[1], 30 * std::tanh(-25.0 / 30));
  EXPECT_DOUBLE_EQ(y[2], 30);
}

TEST(GatedMlp, MultipliesTheActivatedGateByUp) {
  Graph graph;
  Builder builder(graph);
  const ValueId x = builder.input("x", {DType::f32, {1, 1}});
  for (const char* name : {"gate.weight", "up.weight", "down.weight"}) builder.parameter(name, {DType::f32, {1, 1}});
  const Weights weights(graph);
  const auto layer = [&](const char* name) { return linear_weights(weights, name, WeightLayout::out_in); };
  builder.output("y", gated_mlp(builder, x, layer("gate"), layer("up"), layer("down"), Activation::relu));
  const auto run = [&](double value) {
    return interpret_results(graph, {{"x", {{1, 1}, {value}}},
                                     {"gate.weight", {{1, 1}, {2}}},
                                     {"up.weight", {{1, 1}, {3}}},
                                     {"down.weight", {{1, 1}, {5}}}})
        .at("y")
        .data[0];
  };
  EXPECT_EQ(run(1), 30);
  EXPECT_EQ(run(-1), 0);
}

TEST(Activation, EachIsItsFunction) {
  const double x = 0.7;
  const std::vector<std::pair<Activation, double>> expected{
      {Activation::gelu, x * 0.5 * (1 + std::erf(x / std::sqrt(2.0)))},
      {Activation::gelu_tanh, 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)))},
      {Activation::relu, x},
      {Activation::silu, x / (1 + std::exp(-x))},
      {Activation::sigmoid, 1 / (1 + std::exp(-x))},
      {Activation::tanh, std::tanh(x)}};
  for (const auto& [activation, value] : expected) {
    Graph graph;
    Builder builder(graph);
    builder.output("y", activate(builder, activation, builder.input("x", {DType::f32, {}})));
    EXPECT_DOUBLE_EQ(interpret_results(graph, {{"x", {{}, {x}}}}).at("y").data[0], value);
  }
}

}  // namespace
}  // namespace ingot
