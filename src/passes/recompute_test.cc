// What the pass "recompute" makes of graphs: which nodes are repeated, where, and that nothing else changes.
#include "autodiff/recompute.h"

#include <gtest/gtest.h>

#include "models/model.h"
#include "passes/pipeline.h"
#include "passes/testing.h"

namespace ingot {
namespace {

using ingot::testing::graph_of;

// A layer of two products with an activation between them and a residual around, as a loss needs it.
Graph differentiated() {
  Graph graph = graph_of(R"(
%0 = input "x" : f32[2,4]
%1 = parameter "up" : f32[4,4]
%2 = parameter "down" : f32[4,4]
%3 = exp(%0) : f32[2,4] @"embed"
%4 = matmul(%3, %1) : f32[2,4] @"layers.0.up"
%5 = gelu(%4) : f32[2,4] @"layers.0.activation"
%6 = matmul(%5, %2) : f32[2,4] @"layers.0.down"
%7 = add(%3, %6) : f32[2,4] @"layers.0"
%8 = mul(%7, %7) : f32[2,4] @"loss"
%9 = sum(%8) {axes=[0,1]} : f32[] @"loss"
output "loss" = %9
)");
  ingot::testing::differentiate(graph);
  return graph;
}

std::vector<std::string> ops_after_loss(const Graph& graph) {
  std::vector<std::string> ops;
  bool after = false;
  for (NodeId id : graph.schedule()) {
    if (after) ops.emplace_back(graph.node(id).op->name);
    after = after || id == graph.value(graph.find_output("loss")).producer;
  }
  return ops;
}

int64_t count(const std::vector<std::string>& ops, const std::string& name) {
  return std::ranges::count(ops, name);
}

struct Recomputed {
  Graph graph;
  int64_t added = 0;
};

Recomputed recomputed(std::vector<RecomputeLevel> levels) {
  const Graph before = differentiated();
  Recomputed result{before};
  result.added = recompute(result.graph, result.graph.find_output("loss"), levels);
  ingot::testing::expect_same_results(before, result.graph, 0.0);
  return result;
}

TEST(LayerOf, IsTheFirstNumberInThePath) {
  EXPECT_EQ(layer_of("model.layers.3.mlp"), 3);
  EXPECT_EQ(layer_of("h.11"), 11);
  EXPECT_EQ(layer_of("12"), 12);
  EXPECT_EQ(layer_of("model.layers.3.experts.7"), 3);
  EXPECT_EQ(layer_of("model.norm"), kNone);
  EXPECT_EQ(layer_of("h2o.x3"), kNone);
  EXPECT_EQ(layer_of("h.-2"), kNone);
  EXPECT_EQ(layer_of("h.99999999999999999999"), kNone);
  EXPECT_EQ(layer_of(""), kNone);
}

TEST(Recompute, NoneAddsNothing) {
  EXPECT_EQ(recomputed({}).added, 0);
  EXPECT_EQ(recomputed({RecomputeLevel::none, RecomputeLevel::full}).added, 0);  // there is no layer 1
}

// The gradient of "down" reads gelu's result; gelu's own gradient reads what gelu was given, so that is kept anyway.
TEST(Recompute, SelectiveRepeatsTheActivationFromWhatIsKeptAnyway) {
  const Recomputed found = recomputed({RecomputeLevel::selective});
  EXPECT_EQ(found.added, 1);
  const auto ops = ops_after_loss(found.graph);
  EXPECT_EQ(count(ops, "gelu"), 1);
  EXPECT_EQ(count(ops, "matmul"), count(ops_after_loss(differentiated()), "matmul"));
}

TEST(Recompute, FullRepeatsTheProductThatTheActivationNeedsButNotTheLayersResult) {
  const Recomputed found = recomputed({RecomputeLevel::full});
  EXPECT_EQ(found.added, 2);
  const auto ops = ops_after_loss(found.graph), before = ops_after_loss(differentiated());
  EXPECT_EQ(count(ops, "gelu"), 1);
  EXPECT_EQ(count(ops, "matmul"), count(before, "matmul") + 1);
  EXPECT_EQ(count(ops, "add"), count(before, "add"));
}

TEST(Recompute, RunsACopyRightBeforeItsFirstReader) {
  const Recomputed found = recomputed({RecomputeLevel::full});
  const auto schedule = found.graph.schedule();
  const auto readers = found.graph.readers();
  for (size_t i = 0; i < schedule.size(); ++i) {
    const Node& node = found.graph.node(schedule[i]);
    if (node.op->name != "gelu" || i + 1 == schedule.size()) continue;
    const auto& next = readers[static_cast<size_t>(node.outputs[0])];
    EXPECT_NE(std::ranges::find(next, schedule[i + 1]), next.end());
  }
}

// A value that goes out of the program is there anyway.
TEST(Recompute, DoesNotRepeatWhatTheProgramHandsOut) {
  const Graph before = differentiated();
  Graph graph = before;
  for (NodeId id : graph.schedule())
    if (graph.node(id).op->name == "gelu") graph.outputs.push_back({"activation", graph.node(id).outputs[0]});
  const RecomputeLevel levels[] = {RecomputeLevel::selective};
  EXPECT_EQ(recompute(graph, graph.find_output("loss"), levels), 0);
}

TEST(Recompute, DrawsTheSameNumbersAgain) {
  Graph graph = graph_of(R"(
%0 = input "x" : f32[2,4]
%1 = parameter "w" : f32[4,4]
%2 = exp(%0) : f32[2,4] @"embed"
%3 = matmul(%2, %1) : f32[2,4] @"layers.0"
%4 = dropout(%3) {p=0.5, stream="layers.0.dropout"} : f32[2,4] @"layers.0"
%5 = mul(%4, %4) : f32[2,4] @"layers.0"
%6 = matmul(%5, %1) : f32[2,4] @"layers.0"
%7 = add(%2, %6) : f32[2,4] @"layers.0"
%8 = mul(%7, %7) : f32[2,4] @"loss"
%9 = sum(%8) {axes=[0,1]} : f32[] @"loss"
output "loss" = %9
)");
  ingot::testing::differentiate(graph);
  const Graph before = graph;
  const RecomputeLevel levels[] = {RecomputeLevel::full};
  EXPECT_GE(recompute(graph, graph.find_output("loss"), levels), 3);
  ingot::testing::expect_same_results(before, graph, 0.0);
}

// Every family, every level: the whole pipeline with it computes what it computes without.
class RecomputedModel : public ::testing::TestWithParam<std::string> {};

TEST_P(RecomputedModel, ComputesTheSameAfterAllPasses) {
  auto model = Model::from_json(GetParam(), "config");
  ASSERT_TRUE(model.ok()) << model.error().message;
  const auto compiled = [&](std::vector<RecomputeLevel> levels) {
    Graph graph;
    Builder builder(graph);
    const auto forward = model->build(builder, {.batch = 2, .tokens = 5, .dropout = true});
    builder.output("loss", model->build_loss(builder, forward));
    PassContext context{.verify = true, .recompute = std::move(levels)};
    EXPECT_TRUE(run_passes(graph, forward_passes(), context).ok());
    ingot::testing::differentiate(graph);
    EXPECT_TRUE(run_passes(graph, backward_passes(), context).ok());
    graph.remove_dead_nodes();
    return graph;
  };
  const Graph kept = compiled({});
  int64_t nodes = static_cast<int64_t>(kept.schedule().size());
  for (const RecomputeLevel level : {RecomputeLevel::selective, RecomputeLevel::full}) {
    const Graph again = compiled(std::vector(2, level));
    ingot::testing::expect_same_results(kept, again, 1e-12);
    EXPECT_GT(static_cast<int64_t>(again.schedule().size()), nodes);
    nodes = static_cast<int64_t>(again.schedule().size());
  }
}

INSTANTIATE_TEST_SUITE_P(
    Families, RecomputedModel,
    ::testing::Values(R"({"model_type":"gpt2","vocab_size":11,"n_embd":8,"n_layer":2,"n_head":2,"n_positions":8,
                          "resid_pdrop":0.1,"embd_pdrop":0.1,"attn_pdrop":0.1})",
                      R"({"model_type":"llama","vocab_size":11,"hidden_size":8,"intermediate_size":12,
                          "num_hidden_layers":2,"num_attention_heads":4,"num_key_value_heads":2})",
                      R"({"model_type":"qwen3","vocab_size":11,"hidden_size":8,"intermediate_size":12,
                          "num_hidden_layers":2,"num_attention_heads":2,"num_key_value_heads":1,"head_dim":6})",
                      R"({"model_type":"gemma2","vocab_size":11,"hidden_size":8,"intermediate_size":12,
                          "num_hidden_layers":2,"num_attention_heads":2,"num_key_value_heads":1,"head_dim":6,
                          "sliding_window":3,"attn_logit_softcapping":2.0,"final_logit_softcapping":3.0})"));

}  // namespace
}  // namespace ingot
