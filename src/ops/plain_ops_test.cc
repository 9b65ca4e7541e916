// What the automatic tests over examples cannot see: special values, the ops that are gradients themselves (against the
// formula written in plain ops), random numbers.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "base/rng.h"
#include "graph/text.h"
#include "ops/cross_entropy.h"
#include "ops/cross_entropy_grad.h"
#include "ops/dropout.h"
#include "ops/embedding_grad.h"
#include "ops/interpret.h"
#include "ops/layer_norm.h"
#include "ops/layer_norm_grad.h"
#include "ops/mask_scores.h"
#include "ops/registry.h"
#include "ops/rms_norm.h"
#include "ops/rms_norm_grad.h"
#include "ops/rope.h"
#include "ops/softmax.h"
#include "ops/split.h"

namespace ingot {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

RefTensor random_tensor(const Shape& shape, uint64_t seed) {
  RefTensor tensor{shape, {}};
  for (int64_t i = 0; i < shape.elements(); ++i)
    tensor.data.push_back(normal_at(stream_key(seed, "test"), static_cast<uint64_t>(i)));
  return tensor;
}

TEST(Softmax, GivesZerosForARowThatIsMaskedAltogether) {
  Graph graph;
  Builder builder(graph);
  builder.output("y", softmax(builder, builder.input("x", {DType::f32, {2, 3}})));
  const RefTensor x{{2, 3}, {-kInfinity, -kInfinity, -kInfinity, -kInfinity, 0, 0}};
  EXPECT_EQ(interpret_results(graph, {{"x", x}}).at("y").data, (std::vector<double>{0, 0, 0, 0, 0.5, 0.5}));
}

TEST(MaskScores, KeepsWhatTheDocumentAndTheWindowLet) {
  Graph graph;
  Builder builder(graph);
  const ValueId scores = builder.input("scores", {DType::f32, {1, 1, 4, 4}});
  const ValueId first = builder.input("first", {DType::i32, {1, 4}});
  builder.output("documents", mask_scores(builder, scores, first, {0, 0}));
  builder.output("window", mask_scores(builder, scores, first, {2, 0}));
  RefTensor ones{{1, 1, 4, 4}, std::vector<double>(16, 1.0)};
  const auto results = interpret_results(graph, {{"scores", ones}, {"first", {{1, 4}, {0, 0, 0, 3}}}});
  EXPECT_EQ(results.at("documents").data, (std::vector<double>{1, 0, 0, 0, 1, 1, 0, 0, 1, 1, 1, 0, 0, 0, 0, 1}));
  EXPECT_EQ(results.at("window").data, (std::vector<double>{1, 0, 0, 0, 1, 1, 0, 0, 0, 1, 1, 0, 0, 0, 0, 1}));
}

TEST(MaskScores, TheInfiniteFillPrintsAndParsesBack) {
  Graph graph;
  Builder builder(graph);
  const ValueId scores = builder.input("scores", {DType::f32, {1, 1, 2, 2}});
  builder.output("y", mask_scores(builder, scores, builder.input("first", {DType::i32, {1, 2}})));
  const std::string text = print_graph(graph);
  EXPECT_NE(text.find("fill=-inf"), std::string::npos) << text;
  const auto parsed = parse_graph(text, find_op);
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  EXPECT_EQ(print_graph(*parsed), text);
}

TEST(Dropout, DrawsByTheGlobalElementAndKeepsTheExpectation) {
  Graph graph;
  Builder builder(graph);
  builder.output("y", dropout(builder, builder.input("x", {DType::f32, {8, 500}}), 0.25, "layer"));
  const RefTensor ones{{8, 500}, std::vector<double>(4000, 1.0)};
  const auto run = [&](uint64_t step, int64_t first) {
    return interpret_results(graph, {{"x", ones}}, RandomState{7, step, first, 8}).at("y").data;
  };
  const auto y = run(3, 0);
  EXPECT_NEAR(std::accumulate(y.begin(), y.end(), 0.0) / 4000, 1.0, 0.05);
  for (double value : y) EXPECT_TRUE(value == 0 || value == 1 / 0.75);
  EXPECT_NE(run(4, 0), y);
  // Sequences 2 to 9 overlap sequences 0 to 7 in six.
  const auto later = run(3, 2);
  EXPECT_TRUE(std::equal(y.begin() + 1000, y.end(), later.begin()));
  const uint32_t word = philox(stream_key(7, "layer"), 1001 / 4, 3)[1001 % 4];
  EXPECT_EQ(y[1001] != 0, uniform_from_bits(word) >= 0.25f);
}

TEST(Dropout, NeedsAProbabilityBelowOne) {
  Graph graph;
  Builder builder(graph);
  const ValueId x = builder.input("x", {DType::f32, {2}});
  EXPECT_EQ(dropout(builder, x, 0.0, "layer"), x);
  EXPECT_THROW(dropout(builder, x, 1.0, "layer"), BugError);
}

TEST(EmbeddingGrad, AddsToTheAccumulator) {
  Graph graph;
  Builder builder(graph);
  const ValueId ids = builder.input("ids", {DType::i32, {3}}), dy = builder.input("dy", {DType::f32, {3, 2}});
  const ValueId before = builder.input("before", {DType::f32, {3, 2}});
  builder.output("sum", embedding_grad(builder, ids, dy, 3, before));
  const auto results = interpret_results(
      graph,
      {{"ids", {{3}, {2, 0, 2}}}, {"dy", {{3, 2}, {1, 2, 3, 4, 5, 6}}}, {"before", {{3, 2}, {9, 9, 7, 7, 5, 5}}}});
  EXPECT_EQ(results.at("sum").data, (std::vector<double>{12, 13, 7, 7, 11, 13}));
}

TEST(NormGrads, AddTheResidualToTheGradientOfX) {
  Graph graph;
  Builder builder(graph);
  const ValueId x = builder.input("x", {DType::f32, {3, 5}}), dy = builder.input("dy", {DType::f32, {3, 5}});
  const ValueId weight = builder.input("weight", {DType::f32, {5}}), more = builder.input("more", {DType::f32, {3, 5}});
  const LayerNormOutputs layer = layer_norm(builder, x, weight, kNone, 1e-5);
  const RmsNormOutputs rms = rms_norm(builder, x, weight, 1e-5);
  for (const auto& [name, residual] : {std::pair("without", kNone), std::pair("with", more)}) {
    builder.output(std::string("layer.") + name,
                   layer_norm_grad(builder, x, weight, layer.mean, layer.rstd, dy, residual, false).dx);
    builder.output(std::string("rms.") + name, rms_norm_grad(builder, x, weight, rms.rstd, dy, residual).dx);
  }
  const RefTensor residual = random_tensor({3, 5}, 4);
  const auto results = interpret_results(graph, {{"x", random_tensor({3, 5}, 1)},
                                                 {"dy", random_tensor({3, 5}, 2)},
                                                 {"weight", random_tensor({5}, 3)},
                                                 {"more", residual}});
  for (const std::string kind : {"layer", "rms"})
    for (size_t i = 0; i < 15; ++i)
      EXPECT_DOUBLE_EQ(results.at(kind + ".with").data[i], results.at(kind + ".without").data[i] + residual.data[i]);
}

TEST(LayerNorm, NormalizesRowsToMeanZeroAndVarianceOne) {
  Graph graph;
  Builder builder(graph);
  const LayerNormOutputs norm = layer_norm(builder, builder.input("x", {DType::f32, {3, 64}}), kNone, kNone, 0.0);
  builder.output("y", norm.y);
  const auto y = interpret_results(graph, {{"x", random_tensor({3, 64}, 1)}}).at("y").data;
  for (size_t row = 0; row < 3; ++row) {
    double sum = 0, squares = 0;
    for (size_t i = 0; i < 64; ++i) sum += y[row * 64 + i], squares += y[row * 64 + i] * y[row * 64 + i];
    EXPECT_NEAR(sum, 0, 1e-12);
    EXPECT_NEAR(squares, 64, 1e-9);
  }
}

TEST(Rope, TheInverseUndoesIt) {
  Graph graph;
  Builder builder(graph);
  const ValueId x = builder.input("x", {DType::f32, {1, 2, 3, 4}});
  const ValueId positions = builder.input("positions", {DType::i32, {1, 2}});
  const RopeAttributes attributes{{1.0, 0.01}, 2, false};
  const ValueId y = rope(builder, x, positions, attributes);
  builder.output("y", y);
  builder.output("back", rope(builder, y, positions, {attributes.inv_freq, 2, true}));
  const RefTensor in = random_tensor({1, 2, 3, 4}, 1);
  const auto results = interpret_results(graph, {{"x", in}, {"positions", {{1, 2}, {0, 11}}}});
  for (size_t i = 0; i < 24; ++i) EXPECT_NEAR(results.at("back").data[i], in.data[i], 1e-14);
  const auto& out = results.at("y").data;
  EXPECT_EQ(std::vector(out.begin(), out.begin() + 12), std::vector(in.data.begin(), in.data.begin() + 12));
  EXPECT_NE(out[12], in.data[12]);
  EXPECT_EQ(out[20], in.data[20]) << "the third head is not rotated";
}

TEST(CrossEntropy, SumsOverTheRowsThatCount) {
  Graph graph;
  Builder builder(graph);
  const ValueId logits = builder.input("logits", {DType::f32, {3, 2}});
  const ValueId targets = builder.input("targets", {DType::i32, {3}}), scale = builder.input("scale", {DType::f32, {}});
  builder.output("loss", cross_entropy(builder, logits, targets, scale));
  builder.output("grad", cross_entropy_grad(builder, logits, targets, scale, scale));
  const RefTensor x{{3, 2}, {0, 0, 1000, -1000, std::log(3.0), 0}};
  const auto counted =
      interpret_results(graph, {{"logits", x}, {"targets", {{3}, {0, -100, 1}}}, {"scale", {{}, {0.5}}}});
  EXPECT_NEAR(counted.at("loss").data[0], 0.5 * (std::log(2.0) + std::log(4.0)), 1e-15);
  const std::vector<double> expected{-0.125, 0.125, 0, 0, 0.1875, -0.1875};
  for (size_t i = 0; i < 6; ++i) EXPECT_NEAR(counted.at("grad").data[i], expected[i], 1e-15);
  const auto none =
      interpret_results(graph, {{"logits", x}, {"targets", {{3}, {-100, -100, -1}}}, {"scale", {{}, {0}}}});
  EXPECT_EQ(none.at("loss").data[0], 0);
  EXPECT_EQ(none.at("grad").data, std::vector<double>(6, 0.0));
}

TEST(Infer, RefusesInputsThatDoNotFit) {
  const auto refused = [](const OpDef& op, std::vector<Type> inputs, const Attributes& attributes) {
    return !op.infer(inputs, attributes).ok();
  };
  const Type x{DType::f32, {2, 3}};
  for (const OpDef* op : all_ops()) {
    const OpExample example = op->examples().front();
    std::vector<Type> more = example.inputs;
    if (op->name == "concat" || op->name == "cluster") continue;
    more.insert(more.end(), 9, x);
    EXPECT_TRUE(refused(*op, more, example.attributes)) << op->name << " takes nine inputs too many";
    if (example.inputs.empty()) continue;
    EXPECT_TRUE(refused(*op, {}, example.attributes)) << op->name << " takes no inputs";
  }
  EXPECT_TRUE(refused(kSplit, {x}, SplitAttributes{1, {1, 1}}));
  EXPECT_TRUE(refused(kSplit, {x}, SplitAttributes{2, {1, 2}}));
  EXPECT_TRUE(refused(kSplit, {x}, SplitAttributes{1, {4, -1}}));
}

}  // namespace
}  // namespace ingot
