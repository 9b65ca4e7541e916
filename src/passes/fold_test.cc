#include "passes/fold.h"

#include <gtest/gtest.h>

#include "passes/cse.h"
#include "passes/dce.h"
#include "passes/testing.h"

namespace ingot {
namespace {

using ingot::testing::expect_unchanged;
using ingot::testing::run_pass;

// Each case: what one value is computed from, and what remains.
void expect_fold(std::string_view before, std::string_view after) {
  const auto result = run_pass(fold, before);
  EXPECT_TRUE(result.changed);
  EXPECT_EQ(result.text, print_graph(ingot::testing::graph_of(after)));
}

TEST(Fold, DropsNeutralElements) {
  expect_fold(R"(%0 = input "x" : f32[2,3]
%1 = constant() {dtype=f32, shape=[3], values=[0]}
%2 = add(%1, %0)
%3 = constant() {dtype=f32, shape=[], values=[1]}
%4 = mul(%2, %3)
%5 = scale(%4) {factor=1}
%6 = add_scalar(%5) {value=0}
%7 = dropout(%6) {p=0, stream="a"}
%8 = exp(%7)
output "y" = %8)",
              R"(%0 = input "x" : f32[2,3]
%1 = exp(%0)
output "y" = %1)");
}

TEST(Fold, KeepsAConstantThatBroadcastsTheOther) {
  expect_unchanged(fold, R"(%0 = input "x" : f32[3]
%1 = constant() {dtype=f32, shape=[2,3], values=[0]}
%2 = add(%0, %1)
output "y" = %2)");
}

TEST(Fold, EvaluatesConstants) {
  expect_fold(R"(%0 = input "x" : f32[2]
%1 = constant() {dtype=f32, shape=[2], values=[1,2]}
%2 = constant() {dtype=f32, shape=[], values=[3]}
%3 = mul(%1, %2)
%4 = add(%0, %3)
output "y" = %4)",
              R"(%0 = input "x" : f32[2]
%1 = constant() {dtype=f32, shape=[2], values=[3,6]}
%2 = add(%0, %1)
output "y" = %2)");
}

TEST(Fold, TurnsProductsWithAConstantIntoScales) {
  expect_fold(R"(%0 = input "x" : f32[2,3]
%1 = constant() {dtype=f32, shape=[], values=[4]}
%2 = div(%0, %1)
%3 = constant() {dtype=f32, shape=[1], values=[3]}
%4 = mul(%3, %2)
output "y" = %4)",
              R"(%0 = input "x" : f32[2,3]
%1 = scale(%0) {factor=0.75}
output "y" = %1)");
}

TEST(Fold, JoinsReshapesAndTransposes) {
  expect_fold(R"(%0 = input "x" : f32[2,3,4]
%1 = transpose(%0) {permutation=[1,0,2]}
%2 = transpose(%1) {permutation=[1,0,2]}
%3 = reshape(%2) {shape=[6,4]}
%4 = reshape(%3) {shape=[2,12]}
%5 = transpose(%0) {permutation=[1,2,0]}
%6 = transpose(%5) {permutation=[1,2,0]}
output "a" = %4
output "b" = %6)",
              R"(%0 = input "x" : f32[2,3,4]
%1 = reshape(%0) {shape=[2,12]}
%2 = transpose(%0) {permutation=[2,0,1]}
output "a" = %1
output "b" = %2)");
}

TEST(Fold, MakesATransposedOperandAFlag) {
  expect_fold(R"(%0 = input "x" : f32[2,3]
%1 = input "y" : f32[4,3]
%2 = transpose(%1) {permutation=[1,0]}
%3 = matmul(%0, %2)
output "z" = %3)",
              R"(%0 = input "x" : f32[2,3]
%1 = input "y" : f32[4,3]
%2 = matmul(%0, %1) {transpose_a=false, transpose_b=true}
output "z" = %2)");
}

TEST(Fold, UndoesASplitOfAJoinAndAJoinOfASplit) {
  expect_fold(R"(%0 = input "x" : f32[2,3]
%1 = input "y" : f32[2,4]
%2 = concat(%0, %1) {axis=1}
%3, %4 = split(%2) {axis=1, sizes=[3,4]}
%5 = exp(%4)
%6, %7 = split(%5) {axis=1, sizes=[1,3]}
%8 = concat(%6, %7) {axis=1}
%9 = exp(%8)
output "a" = %9)",
              R"(%0 = input "x" : f32[2,3]
%1 = input "y" : f32[2,4]
%2 = exp(%1)
%3 = exp(%2)
output "a" = %3)");
  expect_unchanged(fold, R"(%0 = input "x" : f32[2,3]
%1, %2, %3 = split(%0) {axis=1, sizes=[1,1,1]}
%4 = concat(%2, %1, %3) {axis=1}
output "a" = %4)");
}

TEST(Fold, SumsABroadcastByCounting) {
  expect_fold(R"(%0 = input "x" : f32[3]
%1 = broadcast_to(%0) {shape=[4,3]}
%2 = sum(%1) {axes=[0]}
output "y" = %2)",
              R"(%0 = input "x" : f32[3]
%1 = scale(%0) {factor=4}
output "y" = %1)");
  expect_unchanged(fold, R"(%0 = input "x" : f32[3]
%1 = broadcast_to(%0) {shape=[4,3]}
%2 = sum(%1) {axes=[1]}
output "y" = %2)");
}

TEST(Fold, LetsElementwiseOpsRepeatTheirInputs) {
  expect_fold(R"(%0 = input "x" : f32[3]
%1 = input "y" : f32[4,3]
%2 = broadcast_to(%0) {shape=[4,3]}
%3 = mul(%1, %2)
output "z" = %3)",
              R"(%0 = input "x" : f32[3]
%1 = input "y" : f32[4,3]
%2 = mul(%1, %0)
output "z" = %2)");
}

TEST(Cse, KeepsTheFirstOfEqualNodes) {
  const auto result = run_pass(cse, R"(%0 = input "x" : f32[3]
%1 = input "y" : f32[3]
%2 = add(%0, %1)
%3 = add(%1, %0)
%4 = sub(%0, %1)
%5 = sub(%1, %0)
%6 = dropout(%2) {p=0.5, stream="a"}
%7 = dropout(%3) {p=0.5, stream="a"}
%8 = dropout(%3) {p=0.5, stream="b"}
output "a" = %4
output "b" = %5
output "c" = %6
output "d" = %7
output "e" = %8)");
  EXPECT_TRUE(result.changed);
  EXPECT_EQ(result.text, R"(graph "graph"
%0 = input "x" : f32[3]
%1 = input "y" : f32[3]
%2 = add(%0, %1) : f32[3]
%3 = sub(%0, %1) : f32[3]
%4 = sub(%1, %0) : f32[3]
%5 = dropout(%2) {p=0.5, stream="a"} : f32[3]
%6 = dropout(%2) {p=0.5, stream="b"} : f32[3]
output "a" = %3
output "b" = %4
output "c" = %5
output "d" = %5
output "e" = %6
)");
  expect_unchanged(cse, result.text);
}

TEST(Dce, RemovesWhatNothingNeeds) {
  Graph graph = ingot::testing::graph_of(R"(%0 = state "x" : f32[3]
%1 = exp(%0)
%2 = exp(%1)
%3 = log(%0)
store %0 = %1)");
  PassContext context;
  EXPECT_TRUE(dce(graph, context));
  EXPECT_FALSE(dce(graph, context));
  EXPECT_EQ(print_graph(graph), R"(graph "graph"
%0 = state "x" : f32[3]
%1 = exp(%0) : f32[3]
store %0 = %1
)");
}

}  // namespace
}  // namespace ingot
