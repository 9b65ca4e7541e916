#include <gtest/gtest.h>

#include "cost/estimate.h"
#include "graph/builder.h"
#include "graph/text.h"
#include "ops/registry.h"

namespace ingot {
namespace {

OpCost cost_of_last(const std::string& text) {
  const auto graph = parse_graph("graph \"g\"\n" + text, find_op);
  EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : graph.error().message);
  return cost_of(*graph, graph->node(graph->schedule().back()));
}

TEST(OpCost, EveryOpHasARuleOrATraitThatSaysWhatItCosts) {
  for (const OpDef* op : all_ops()) EXPECT_TRUE(has_cost_rule(*op)) << op->name;
}

TEST(OpCost, EveryOpsExamplesHaveAFiniteCostThatIsNotNegative) {
  for (const OpDef* op : all_ops())
    for (const OpExample& example : op->examples()) {
      Graph graph;
      Builder builder(graph);
      std::vector<ValueId> inputs;
      for (const Type& type : example.inputs)
        inputs.push_back(builder.state("s" + std::to_string(inputs.size()), type));
      const NodeId node = builder.add_node(*op, inputs, example.attributes);
      const OpCost cost = cost_of(graph, graph.node(node));
      EXPECT_GE(cost.flops, 0) << op->name;
      EXPECT_GE(cost.bytes, 0) << op->name;
      EXPECT_LT(cost.flops + cost.bytes, 1e12) << op->name;
      EXPECT_EQ(cost.matrix, op->traits.product) << op->name;
      const bool renames = op->traits.view || op->traits.part || op->traits.join;
      EXPECT_TRUE(renames || cost.bytes > 0) << op->name;
    }
}

TEST(OpCost, AProductIsTwoFlopsAMultiplyAddAndEveryOperandOnce) {
  const OpCost cost = cost_of_last(R"(%0 = state "a" : f32[4,3,5]
%1 = state "b" : f32[7,5]
%2 = matmul(%0, %1) {transpose_b=true} : f32[4,3,7]
output "c" = %2)");
  EXPECT_EQ(cost.flops, 2.0 * 12 * 5 * 7);
  EXPECT_EQ(cost.bytes, 4.0 * (60 + 35 + 84));
  EXPECT_TRUE(cost.matrix);
}

TEST(OpCost, CausalAttentionCountsThePairsThatAreSeen) {
  const auto attention = [](int64_t window) {
    return cost_of_last(fmt::format(R"(%0 = state "qkv" : f32[2,8,12]
%1 = state "first" : i32[2,8]
%2, %3 = attention_packed(%0, %1) {{heads=1, kv_heads=1, head_dim=4, window={}}} : f32[2,8,4], f32[2,1,8,2]
output "out" = %2)",
                                    window));
  };
  const double a_pair = 2 * 2 * 4 + kExpFlops + 4;
  EXPECT_EQ(attention(0).flops, 2 * 36 * a_pair);           // 8 · 9 / 2
  EXPECT_EQ(attention(3).flops, 2 * (6 + 5 * 3) * a_pair);  // 1 + 2 + 3, then 3 for each of the other five
  EXPECT_EQ(attention(100).flops, attention(0).flops);
}

TEST(OpCost, RenamingIsFreeWhereNothingMoves) {
  EXPECT_EQ(cost_of_last(R"(%0 = state "x" : f32[4,6]
%1 = reshape(%0) {shape=[24]} : f32[24]
output "y" = %1)"),
            OpCost{});
  EXPECT_EQ(cost_of_last(R"(%0 = state "x" : f32[4,6]
%1, %2 = split(%0) {axis=0, sizes=[1,3]} : f32[1,6], f32[3,6]
output "y" = %1)"),
            OpCost{});
  const OpCost copied = cost_of_last(R"(%0 = state "x" : f32[4,6]
%1, %2 = split(%0) {axis=1, sizes=[2,4]} : f32[4,2], f32[4,4]
output "y" = %1)");
  EXPECT_EQ(copied.bytes, 2 * 96.0);
}

TEST(OpCost, AClusterCostsItsInstructionsAndMovesItsOperandsOnce) {
  const OpCost cost = cost_of_last(R"(%0 = state "x" : f32[10]
%1 = state "y" : f32[10]
%2 = cluster(%0, %1) {program=[{op="add", inputs=[0,1], attributes="{}"},{op="exp", inputs=[2], attributes="{}"}], outputs=[3]} : f32[10]
output "z" = %2)");
  EXPECT_EQ(cost.flops, 10 * (1 + kExpFlops));
  EXPECT_EQ(cost.bytes, 120);
}

TEST(Estimate, EachNodeTakesTheLargerOfArithmeticAndMemoryAndTimesAddUp) {
  const MachineLimits limits{.peak_gflops = 2e-9, .product_gflops = 1e-9, .copy_gbytes_per_s = 1e-9};  // one a second
  const auto graph = parse_graph(R"(graph "g"
%0 = state "a" : f32[2,3]
%1 = state "b" : f32[3,4]
%2 = matmul(%0, %1) : f32[2,4]
%3 = exp(%2) : f32[2,4]
%4 = add(%3, %3) : f32[2,4]
output "c" = %4)",
                                 find_op);
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  const GraphCost cost = estimate(*graph, limits);
  EXPECT_EQ(cost.seconds_by_op.at("matmul"), 4 * (6 + 12 + 8));  // 48 flops, 104 bytes
  EXPECT_EQ(cost.seconds_by_op.at("exp"), 8 * kExpFlops);        // 120 flops, 64 bytes
  EXPECT_EQ(cost.seconds_by_op.at("add"), 3 * 32);               // bytes
  EXPECT_EQ(cost.seconds, 104 + 120 + 96);
  EXPECT_EQ(cost.total.flops, 48 + 120 + 8);
}

TEST(Machine, LimitsAreMeasured) {
  const MachineLimits limits = measure_machine(ThreadPool(1));
  EXPECT_GT(limits.product_gflops, 0.1);
  EXPECT_GE(limits.peak_gflops, limits.product_gflops);
  EXPECT_GT(limits.copy_gbytes_per_s, 0.1);
}

}  // namespace
}  // namespace ingot
