#include <gtest/gtest.h>

#include "passes/fuse_elementwise.h"
#include "passes/fuse_epilogue.h"
#include "passes/testing.h"

namespace ingot {
namespace {

using ingot::testing::expect_unchanged;
using ingot::testing::misses;
using ingot::testing::run_pass;

TEST(FuseEpilogue, TakesBiasActivationAndResidualThroughViewsAndKeepsWhatIsReadElsewhere) {
  const auto result = run_pass(fuse_epilogue, R"(%0 = input "x" : f32[6,4]
%1 = parameter "w" : f32[4,5]
%2 = parameter "b" : f32[5]
%3 = input "residual" : f32[2,3,5]
%4 = matmul(%0, %1) @"mlp"
%5 = reshape(%4) {shape=[2,3,5]} @"mlp"
%6 = add(%5, %2) @"mlp"
%7 = gelu(%6) @"mlp"
%8 = add(%3, %7) @"mlp"
%9 = matmul(%6, %6) {transpose_b=true} @"next"
output "y" = %8
output "z" = %9
)");
  EXPECT_TRUE(result.changed);
  EXPECT_EQ(result.text, R"(graph "graph"
%0 = input "x" : f32[6,4]
%1 = parameter "w" : f32[4,5]
%2 = parameter "b" : f32[5]
%3 = input "residual" : f32[2,3,5]
%4 = reshape(%3) {shape=[6,5]} : f32[6,5] @"mlp"
%5, %6 = linear(%0, %1, %4, %2) {transpose_b=false, program=[{op="add", inputs=[0,2], attributes="{}"},{op="gelu", inputs=[3], attributes="{}"},{op="add", inputs=[1,4], attributes="{}"}], outputs=[3,5]} : f32[6,5], f32[6,5] @"mlp"
%7 = reshape(%5) {shape=[2,3,5]} : f32[2,3,5] @"mlp"
%8 = reshape(%6) {shape=[2,3,5]} : f32[2,3,5] @"mlp"
%9 = matmul(%7, %7) {transpose_a=false, transpose_b=true} : f32[2,3,3] @"next"
output "y" = %8
output "z" = %9
)");
  expect_unchanged(fuse_epilogue, result.text);
}

TEST(FuseEpilogue, TakesEveryReaderOfABackwardProduct) {
  const auto result = run_pass(fuse_epilogue, R"(%0 = input "dy" : f32[6,5]
%1 = parameter "w" : f32[4,5]
%2 = input "pre" : f32[6,4]
%3 = input "other" : f32[6,4]
%4 = matmul(%0, %1) {transpose_b=true}
%5 = mul(%4, %3)
%6 = silu_grad(%2, %5)
%7 = mul(%4, %2)
output "a" = %6
output "b" = %7
)");
  EXPECT_TRUE(result.changed);
  EXPECT_EQ(result.text, R"(graph "graph"
%0 = input "dy" : f32[6,5]
%1 = parameter "w" : f32[4,5]
%2 = input "pre" : f32[6,4]
%3 = input "other" : f32[6,4]
%4, %5 = linear(%0, %1, %3, %2) {transpose_b=true, program=[{op="mul", inputs=[0,1], attributes="{}"},{op="silu_grad", inputs=[2,3], attributes="{}"},{op="mul", inputs=[0,2], attributes="{}"}], outputs=[4,5]} : f32[6,4], f32[6,4]
output "a" = %4
output "b" = %5
)");
  expect_unchanged(fuse_epilogue, result.text);
}

TEST(FuseEpilogue, StaysWhereSomethingElseReadsTheProduct) {
  const std::string_view text = R"(%0 = input "x" : f32[6,4]
%1 = parameter "w" : f32[4,5]
%2 = matmul(%0, %1)
%3 = exp(%2)
%4 = softmax(%2)
output "a" = %3
output "b" = %4
)";
  const auto result = run_pass(fuse_epilogue, text);
  EXPECT_FALSE(result.changed);
  EXPECT_EQ(result.text, print_graph(ingot::testing::graph_of(text)));
  EXPECT_EQ(misses(result.context),
            (std::vector<std::string>{"linear: the product is read by other than elementwise ops"}));
}

TEST(FuseEpilogue, StaysWhereTheOtherInputNeedsTheProduct) {
  const std::string_view text = R"(%0 = input "x" : f32[6,4]
%1 = parameter "w" : f32[4,5]
%2 = matmul(%0, %1)
%3 = reshape(%2) {shape=[30]}
%4 = broadcast_to(%3) {shape=[2,30]}
%5 = sum(%4) {axes=[0,1]}
%6 = mul(%2, %5)
output "a" = %6
)";
  const auto result = run_pass(fuse_epilogue, text);
  EXPECT_FALSE(result.changed);
  EXPECT_EQ(result.text, print_graph(ingot::testing::graph_of(text)));
  EXPECT_EQ(misses(result.context),
            (std::vector<std::string>{"linear: the product is read by other than elementwise ops"}));
}

TEST(FuseEpilogue, LeavesPlainProductsAndThoseOfWeightGradients) {
  expect_unchanged(fuse_epilogue, R"(%0 = input "x" : f32[6,4]
%1 = input "dy" : f32[6,5]
%2 = parameter "w" : f32[5,5]
%3 = matmul(%1, %2)
%4 = matmul(%0, %1) {transpose_a=true}
%5 = scale(%4) {factor=2}
output "a" = %3
output "b" = %5
)");
}

// What a gradient needs much later is not computed early for it: the value between has to be kept anyway.
TEST(FuseEpilogue, LeavesWhatRunsFarAwayAndSavesNothing) {
  const auto result = run_pass(fuse_epilogue, R"(%0 = input "x" : f32[4,4]
%1 = parameter "w" : f32[4,4]
%2 = matmul(%0, %1)
%3 = exp(%2)
%4 = matmul(%3, %3)
%5 = softmax(%4)
%6 = tanh(%3)
%7 = softmax_grad(%5, %6)
output "y" = %7
)");
  EXPECT_TRUE(result.changed);
  EXPECT_NE(result.text.find("tanh(%"), std::string::npos) << result.text;
}

TEST(FuseElementwise, MakesRunsOfOneShapeAndGoesAroundACycle) {
  const auto result = run_pass(fuse_elementwise, R"(%0 = input "x" : f32[2,3]
%1 = input "y" : f32[3]
%2 = mul(%0, %1)
%3 = exp(%2)
%4 = matmul(%3, %3) {transpose_b=true}
%5 = sum(%4) {axes=[0,1]}
%6 = mul(%3, %5)
%7 = tanh(%6)
%8 = square(%0)
%9 = scale(%8) {factor=2}
%10 = add(%7, %9)
output "a" = %10
)");
  EXPECT_TRUE(result.changed);
  EXPECT_EQ(result.text, R"(graph "graph"
%0 = input "x" : f32[2,3]
%1 = input "y" : f32[3]
%2 = cluster(%0, %1) {program=[{op="mul", inputs=[0,1], attributes="{}"},{op="exp", inputs=[2], attributes="{}"}], outputs=[3]} : f32[2,3]
%3 = matmul(%2, %2) {transpose_a=false, transpose_b=true} : f32[2,2]
%4 = sum(%3) {axes=[0,1]} : f32[]
%5 = cluster(%2, %0, %4) {program=[{op="mul", inputs=[0,2], attributes="{}"},{op="tanh", inputs=[3], attributes="{}"},{op="square", inputs=[1], attributes="{}"},{op="scale", inputs=[5], attributes="{factor=2}"},{op="add", inputs=[4,6], attributes="{}"}], outputs=[7]} : f32[2,3]
output "a" = %5
)");
  expect_unchanged(fuse_elementwise, result.text);
}

TEST(FuseElementwise, LeavesSingleOpsAndOtherSizes) {
  expect_unchanged(fuse_elementwise, R"(%0 = input "x" : f32[3]
%1 = input "y" : f32[2,3]
%2 = exp(%0)
%3 = mul(%1, %2)
output "a" = %3
)");
}

TEST(FuseElementwise, StaysWhereItIsSwitchedOff) {
  const std::string_view text = R"(%0 = input "x" : f32[3]
%1 = exp(%0)
%2 = tanh(%1)
output "a" = %2
)";
  EXPECT_FALSE(run_pass(fuse_elementwise, text, {.no_fuse = {"cluster"}}).changed);
  EXPECT_TRUE(run_pass(fuse_elementwise, text, {.no_fuse = {"linear"}}).changed);
}

}  // namespace
}  // namespace ingot
