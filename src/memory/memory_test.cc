#include <gtest/gtest.h>

#include "graph/text.h"
#include "memory/plan.h"
#include "ops/registry.h"

namespace ingot {
namespace {

struct Planned {
  Graph graph;
  VariableLayout variables;
  MemoryPlan plan;
};

Planned planned(std::string_view text, std::vector<int64_t> temporaries = {}) {
  auto graph = parse_graph(text, find_op);
  EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : graph.error().message);
  Planned result{std::move(*graph), {}, {}};
  add_variables_of(result.graph, result.variables);
  temporaries.resize(result.graph.schedule().size(), 0);
  result.plan = plan_memory(result.graph, result.variables, temporaries);
  const Status status = check_plan(result.graph, result.variables, result.plan);
  EXPECT_TRUE(status.ok()) << (status.ok() ? "" : status.error().message);
  return result;
}

constexpr std::string_view kChain = R"(
%0 = input "x" : f32[64]
%1 = mul(%0, %0) : f32[64]
%2 = mul(%1, %1) : f32[64]
%3 = mul(%2, %2) : f32[64]
%4 = mul(%3, %3) : f32[64]
output "y" = %4
)";

TEST(PlanMemory, ReusesTheMemoryOfWhatIsNoLongerRead) {
  const Planned p = planned(kChain);
  EXPECT_EQ(p.plan.workspace_bytes, 2 * 256);  // mul(x, x) must not write over x, so two buffers alternate
  EXPECT_EQ(p.plan.lower_bound_bytes, 2 * 256);
}

TEST(PlanMemory, SaysWhatIsHeldAcrossAStep) {
  const Planned p = planned(R"(
%0 = input "x" : f32[64]
%1 = exp(%0) : f32[64]
%2 = reshape(%1) {shape=[8,8]} : f32[8,8]
%3 = exp(%2) : f32[8,8]
%4 = exp(%3) : f32[8,8]
%5 = mul(%4, %2) : f32[8,8]
output "y" = %5
)");
  EXPECT_EQ(bytes_held_across(p.plan, 2), 256);  // %1, which %2 is a view of, for the last product; %0 is done with
  EXPECT_EQ(bytes_held_across(p.plan, 4), 0);
}

TEST(PlanMemory, WorksInPlaceWhereNothingReadsTheInputLater) {
  const Planned p = planned(R"(
%0 = input "x" : f32[64]
%1 = input "b" : f32[64]
%2 = add(%0, %1) : f32[64]
%3 = add(%2, %1) : f32[64]
output "y" = %3
)");
  EXPECT_EQ(p.plan.workspace_bytes, 2 * 256);
}

TEST(PlanMemory, DoesNotWriteOverAnInputThatIsReadLaterThroughAView) {
  const Planned p = planned(R"(
%0 = input "x" : f32[8,8]
%1 = input "b" : f32[8,8]
%2 = add(%0, %1) : f32[8,8]
%3 = reshape(%0) {shape=[64]} : f32[64]
output "y" = %2
output "z" = %3
)");
  EXPECT_EQ(p.plan.values[0].offset, p.plan.values[3].offset);
  EXPECT_NE(p.plan.values[0].offset, p.plan.values[2].offset);
}

TEST(PlanMemory, ComputesAStoredValueWhereItsVariableLies) {
  const Planned p = planned(R"(
%0 = state "grad" : f32[64]
%1 = input "x" : f32[64]
%2 = mul(%1, %1) : f32[64]
store %0 = %2
)");
  EXPECT_EQ(p.plan.values[2].segment, Segment::persistent);
  EXPECT_TRUE(p.plan.copies.empty());
}

TEST(PlanMemory, UpdatesAVariableInPlace) {
  const Planned p = planned(R"(
%0 = state "grad" : f32[64]
%1 = input "x" : f32[64]
%2 = add(%0, %1) : f32[64]
store %0 = %2
)");
  EXPECT_EQ(p.plan.values[2], (Placement{Segment::persistent, 0, 256, 0, 1}));
  EXPECT_TRUE(p.plan.copies.empty());
}

TEST(PlanMemory, NeverWritesOverAVariableThatKeepsItsContent) {
  const Planned p = planned(R"(
%0 = parameter "w" : f32[64]
%1 = input "x" : f32[64]
%2 = add(%0, %1) : f32[64]
output "y" = %2
)");
  EXPECT_EQ(p.plan.values[2].segment, Segment::workspace);
}

TEST(PlanMemory, CopiesAtTheEndWhereTheOldContentIsStillRead) {
  const Planned p = planned(R"(
%0 = state "s" : f32[64]
%1 = input "x" : f32[64]
%2 = mul(%1, %1) : f32[64]
%3 = add(%0, %2) : f32[64]
output "y" = %3
store %0 = %2
)");
  EXPECT_EQ(p.plan.copies.size(), 1u);
}

TEST(PlanMemory, SwapsTwoVariables) {
  const Planned p = planned(R"(
%0 = state "a" : f32[64]
%1 = state "b" : f32[64]
%2 = add(%0, %1) : f32[64]
output "sum" = %2
store %0 = %2
)");
  EXPECT_EQ(p.variables.bytes(), 512);
}

TEST(PlanMemory, GivesKernelsTheirTemporaries) {
  const Planned p = planned(kChain, {0, 1000, 0, 0});
  EXPECT_EQ(p.plan.temporaries[1].bytes, 1000);
}

TEST(CheckPlan, FindsTwoValuesThatShareBytesWhileBothAreNeeded) {
  Planned p = planned(kChain);
  p.plan.values[1].offset = p.plan.values[0].offset;
  EXPECT_FALSE(check_plan(p.graph, p.variables, p.plan).ok());
}

TEST(CheckPlan, FindsAValueOutsideTheWorkspace) {
  Planned p = planned(kChain);
  p.plan.values[4].offset = p.plan.workspace_bytes;
  EXPECT_FALSE(check_plan(p.graph, p.variables, p.plan).ok());
}

TEST(CheckPlan, FindsATemporaryOverAnInput) {
  Planned p = planned(kChain, {0, 1000, 0, 0});
  p.plan.temporaries[1].offset = p.plan.values[1].offset;
  EXPECT_FALSE(check_plan(p.graph, p.variables, p.plan).ok());
}

TEST(CheckPlan, FindsAVariableThatIsNotStored) {
  Planned p = planned(R"(
%0 = state "grad" : f32[64]
%1 = input "x" : f32[64]
%2 = mul(%1, %1) : f32[64]
store %0 = %2
)");
  p.plan.values[2] = {Segment::workspace, 0, 256, 0, 1};
  p.plan.workspace_bytes = 512;
  EXPECT_FALSE(check_plan(p.graph, p.variables, p.plan).ok());
}

}  // namespace
}  // namespace ingot
