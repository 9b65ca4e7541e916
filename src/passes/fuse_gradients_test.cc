#include <gtest/gtest.h>

#include "passes/fuse_accumulate.h"
#include "passes/fuse_residual_norm.h"
#include "passes/merge_loss.h"
#include "passes/testing.h"

namespace ingot {
namespace {

using ingot::testing::expect_unchanged;
using ingot::testing::misses;
using ingot::testing::run_pass;

TEST(MergeLoss, TakesTheLossFromTheGradientOp) {
  const auto result = run_pass(merge_loss, R"(%0 = input "x" : f32[6,4]
%1 = parameter "w" : f32[7,4]
%2 = input "targets" : i32[6]
%3 = input "scale" : f32[]
%4 = linear_cross_entropy(%0, %1, %2, %3) {transpose_b=true}
%5 = constant() {dtype=f32, shape=[], values=[1]}
%6, %7, %8 = linear_cross_entropy_grad(%0, %1, %2, %3, %5) {transpose_b=true}
output "loss" = %4
output "dx" = %7
output "dw" = %8
)");
  EXPECT_TRUE(result.changed);
  EXPECT_EQ(result.text, R"(graph "graph"
%0 = input "x" : f32[6,4]
%1 = parameter "w" : f32[7,4]
%2 = input "targets" : i32[6]
%3 = input "scale" : f32[]
%4 = constant() {dtype=f32, shape=[], values=[1]} : f32[]
%5, %6, %7 = linear_cross_entropy_grad(%0, %1, %2, %3, %4) {transpose_b=true, softcap=0} : f32[], f32[6,4], f32[7,4]
output "loss" = %5
output "dx" = %6
output "dw" = %7
)");
  expect_unchanged(merge_loss, result.text);
}

// A gradient that is scaled by the loss itself needs the loss first.
TEST(MergeLoss, StaysWhereTheGradientDependsOnTheLoss) {
  expect_unchanged(merge_loss, R"(%0 = input "x" : f32[6,4]
%1 = parameter "w" : f32[7,4]
%2 = input "targets" : i32[6]
%3 = input "scale" : f32[]
%4 = linear_cross_entropy(%0, %1, %2, %3) {transpose_b=true}
%5 = exp(%4)
%6, %7, %8 = linear_cross_entropy_grad(%0, %1, %2, %3, %5) {transpose_b=true}
output "loss" = %4
output "dx" = %7
output "dw" = %8
)");
}

TEST(FuseAccumulate, AddsWeightsAndRowsWhereTheyAreComputed) {
  const auto result = run_pass(fuse_accumulate, R"(%0 = input "a" : f32[6,4]
%1 = input "dy" : f32[6,5]
%2 = state "sum" : f32[4,5]
%3 = input "ids" : i32[6]
%4 = state "rows" : f32[9,4]
%5 = state "gate" : f32[2,4]
%6 = state "up" : f32[3,4]
%7 = matmul(%0, %1) {transpose_a=true}
%8 = add(%2, %7)
%9 = embedding_grad(%3, %0) {rows=9}
%10 = add(%9, %4)
%11 = matmul(%1, %0) {transpose_a=true}
%12, %13 = split(%11) {axis=0, sizes=[2,3]}
%14 = add(%5, %12)
%15 = add(%13, %6)
store %2 = %8
store %4 = %10
store %5 = %14
store %6 = %15
)");
  EXPECT_TRUE(result.changed);
  EXPECT_EQ(result.text, R"(graph "graph"
%0 = input "a" : f32[6,4]
%1 = input "dy" : f32[6,5]
%2 = state "sum" : f32[4,5]
%3 = input "ids" : i32[6]
%4 = state "rows" : f32[9,4]
%5 = state "gate" : f32[2,4]
%6 = state "up" : f32[3,4]
%7 = matmul_add(%2, %0, %1) {transpose_a=true, transpose_b=false} : f32[4,5]
%8 = embedding_grad(%3, %0, %4) {rows=9, accumulate=true} : f32[9,4]
%9 = concat(%5, %6) {axis=0} : f32[5,4]
%10 = matmul_add(%9, %1, %0) {transpose_a=true, transpose_b=false} : f32[5,4]
%11, %12 = split(%10) {axis=0, sizes=[2,3]} : f32[2,4], f32[3,4]
store %2 = %7
store %4 = %8
store %5 = %11
store %6 = %12
)");
  expect_unchanged(fuse_accumulate, result.text);
}

TEST(FuseAccumulate, LeavesALayersResidualAndAGradientThatIsReadTwice) {
  expect_unchanged(fuse_accumulate, R"(%0 = input "x" : f32[6,4]
%1 = input "w" : f32[4,4]
%2 = state "sum" : f32[4,4]
%3 = matmul(%0, %1)
%4 = add(%0, %3)
%5 = matmul(%0, %0) {transpose_a=true}
%6 = add(%2, %5)
store %2 = %6
output "y" = %4
output "g" = %5
)");
}

TEST(FuseAccumulate, SumsATiedWeightsTwoGradients) {
  const auto result = run_pass(fuse_accumulate, R"(%0 = input "a" : f32[6,4]
%1 = input "dy" : f32[6,9]
%2 = input "ids" : i32[6]
%3 = matmul(%1, %0) {transpose_a=true}
%4 = embedding_grad(%2, %0) {rows=9}
%5 = add(%3, %4)
output "g" = %5
)");
  EXPECT_TRUE(result.changed);
  EXPECT_EQ(result.text, R"(graph "graph"
%0 = input "a" : f32[6,4]
%1 = input "dy" : f32[6,9]
%2 = input "ids" : i32[6]
%3 = matmul(%1, %0) {transpose_a=true, transpose_b=false} : f32[9,4]
%4 = embedding_grad(%2, %0, %3) {rows=9, accumulate=true} : f32[9,4]
output "g" = %4
)");
  expect_unchanged(fuse_accumulate, result.text);
}

TEST(FuseResidualNorm, TakesTheSumBeforeANorm) {
  const auto result = run_pass(fuse_residual_norm, R"(%0 = input "x" : f32[2,3,4]
%1 = input "delta" : f32[2,3,4]
%2 = parameter "weight" : f32[4]
%3 = parameter "bias" : f32[4]
%4 = dropout(%1) {p=0.25, stream="a"} @"h.0"
%5 = add(%0, %4) @"h.0"
%6, %7, %8 = layer_norm(%5, %2, %3) {} @"h.0.ln"
%9 = exp(%5) @"h.1"
%10 = add(%5, %9) @"h.1"
%11, %12 = rms_norm(%10, %2) {} @"h.1.norm"
output "sum" = %10
output "y" = %6
output "z" = %11
)");
  EXPECT_TRUE(result.changed);
  EXPECT_EQ(result.text, R"(graph "graph"
%0 = input "x" : f32[2,3,4]
%1 = input "delta" : f32[2,3,4]
%2 = parameter "weight" : f32[4]
%3 = parameter "bias" : f32[4]
%4, %5, %6, %7 = residual_layer_norm(%0, %1, %2, %3) {axes=1, eps=1e-05, has_weight=true, has_bias=true, dropout=0.25, stream="a"} : f32[2,3,4], f32[2,3,4], f32[2,3], f32[2,3] @"h.0.ln"
%8 = exp(%4) : f32[2,3,4] @"h.1"
%9, %10, %11 = residual_rms_norm(%4, %8, %2) {eps=1e-06, has_weight=true, dropout=0, stream=""} : f32[2,3,4], f32[2,3,4], f32[2,3] @"h.1.norm"
output "sum" = %9
output "y" = %5
output "z" = %10
)");
  expect_unchanged(fuse_residual_norm, result.text);
}

TEST(FuseResidualNorm, AddsTheResidualsGradientInTheNorms) {
  const auto result = run_pass(fuse_residual_norm, R"(%0 = input "x" : f32[2,3,4]
%1 = parameter "weight" : f32[4]
%2 = input "dy" : f32[2,3,4]
%3 = input "residual" : f32[2,3,4]
%4, %5 = rms_norm(%0, %1) {}
%6, %7 = rms_norm_grad(%0, %1, %5, %2) {}
%8 = add(%3, %6)
output "dx" = %8
output "dw" = %7
)");
  EXPECT_TRUE(result.changed);
  EXPECT_EQ(result.text, R"(graph "graph"
%0 = input "x" : f32[2,3,4]
%1 = parameter "weight" : f32[4]
%2 = input "dy" : f32[2,3,4]
%3 = input "residual" : f32[2,3,4]
%4, %5 = rms_norm(%0, %1) {eps=1e-06, has_weight=true} : f32[2,3,4], f32[2,3]
%6, %7 = rms_norm_grad(%0, %1, %5, %2, %3) {has_weight=true, has_residual=true} : f32[2,3,4], f32[4]
output "dx" = %6
output "dw" = %7
)");
  expect_unchanged(fuse_residual_norm, result.text);
}

TEST(FuseResidualNorm, StaysWhereATermIsBroadcast) {
  const std::string_view text = R"(%0 = input "x" : f32[2,3,4]
%1 = input "delta" : f32[3,4]
%2 = parameter "weight" : f32[4]
%3 = add(%0, %1)
%4, %5 = rms_norm(%3, %2) {}
output "y" = %4
)";
  const auto result = run_pass(fuse_residual_norm, text);
  EXPECT_FALSE(result.changed);
  EXPECT_EQ(result.text, print_graph(ingot::testing::graph_of(text)));
  EXPECT_EQ(misses(result.context), (std::vector<std::string>{"residual_rms_norm: a term of the sum is broadcast"}));
}

TEST(FuseResidualNorm, StaysWhereTheOtherGradientComesLater) {
  const std::string_view text = R"(%0 = input "x" : f32[2,3,4]
%1 = parameter "weight" : f32[4]
%2 = input "dy" : f32[2,3,4]
%4, %5 = rms_norm(%0, %1) {}
%6, %7 = rms_norm_grad(%0, %1, %5, %2) {}
%8 = mul(%2, %7)
%9 = add(%8, %6)
output "dx" = %9
)";
  const auto result = run_pass(fuse_residual_norm, text);
  EXPECT_FALSE(result.changed);
  EXPECT_EQ(result.text, print_graph(ingot::testing::graph_of(text)));
  EXPECT_EQ(misses(result.context), (std::vector<std::string>{"rms_norm_grad: the other gradient is computed later"}));
}

}  // namespace
}  // namespace ingot
