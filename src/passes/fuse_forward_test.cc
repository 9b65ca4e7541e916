#include <gtest/gtest.h>

#include "passes/fuse_glu.h"
#include "passes/fuse_linear_cross_entropy.h"
#include "passes/fuse_shared_input.h"
#include "passes/testing.h"

namespace ingot {
namespace {

using ingot::testing::expect_unchanged;
using ingot::testing::misses;
using ingot::testing::run_pass;

TEST(FuseSharedInput, JoinsProductsAndTheirBiases) {
  const auto result = run_pass(fuse_shared_input, R"(%0 = input "x" : f32[2,3,4]
%1 = parameter "q" : f32[4,4]
%2 = parameter "k" : f32[2,4]
%3 = parameter "v" : f32[2,4]
%4 = parameter "qb" : f32[4]
%5 = parameter "kb" : f32[2]
%6 = parameter "vb" : f32[2]
%7 = matmul(%0, %1) {transpose_b=true} @"attn"
%8 = add(%7, %4) @"attn"
%9 = matmul(%0, %2) {transpose_b=true} @"attn"
%10 = add(%9, %5) @"attn"
%11 = matmul(%0, %3) {transpose_b=true} @"attn"
%12 = add(%6, %11) @"attn"
output "q" = %8
output "k" = %10
output "v" = %12
)");
  EXPECT_TRUE(result.changed);
  EXPECT_EQ(result.text, R"(graph "graph"
%0 = input "x" : f32[2,3,4]
%1 = parameter "q" : f32[4,4]
%2 = parameter "k" : f32[2,4]
%3 = parameter "v" : f32[2,4]
%4 = parameter "qb" : f32[4]
%5 = parameter "kb" : f32[2]
%6 = parameter "vb" : f32[2]
%7 = concat(%1, %2, %3) {axis=0} : f32[8,4] @"attn"
%8 = matmul(%0, %7) {transpose_a=false, transpose_b=true} : f32[2,3,8] @"attn"
%9 = concat(%4, %5, %6) {axis=0} : f32[8] @"attn"
%10 = add(%8, %9) : f32[2,3,8] @"attn"
%11, %12, %13 = split(%10) {axis=2, sizes=[4,2,2]} : f32[2,3,4], f32[2,3,2], f32[2,3,2] @"attn"
output "q" = %11
output "k" = %12
output "v" = %13
)");
  expect_unchanged(fuse_shared_input, result.text);
}

TEST(FuseSharedInput, PutsTheGateFirst) {
  const auto result = run_pass(fuse_shared_input, R"(%0 = input "x" : f32[2,3,4]
%1 = parameter "up" : f32[5,4]
%2 = parameter "gate" : f32[5,4]
%3 = matmul(%0, %1) {transpose_b=true} @"mlp"
%4 = matmul(%0, %2) {transpose_b=true} @"mlp"
%5 = silu(%4) @"mlp"
%6 = mul(%5, %3) @"mlp"
output "y" = %6
)");
  EXPECT_TRUE(result.changed);
  EXPECT_EQ(result.text, R"(graph "graph"
%0 = input "x" : f32[2,3,4]
%1 = parameter "up" : f32[5,4]
%2 = parameter "gate" : f32[5,4]
%3 = concat(%2, %1) {axis=0} : f32[10,4] @"mlp"
%4 = matmul(%0, %3) {transpose_a=false, transpose_b=true} : f32[2,3,10] @"mlp"
%5, %6 = split(%4) {axis=2, sizes=[5,5]} : f32[2,3,5], f32[2,3,5] @"mlp"
%7 = silu(%5) : f32[2,3,5] @"mlp"
%8 = mul(%7, %6) : f32[2,3,5] @"mlp"
output "y" = %8
)");
  expect_unchanged(fuse_shared_input, result.text);
}

TEST(FuseSharedInput, StaysWhereAWeightIsReadElsewhere) {
  const std::string_view text = R"(%0 = input "x" : f32[2,3,4]
%1 = parameter "up" : f32[5,4]
%2 = parameter "gate" : f32[5,4]
%3 = matmul(%0, %1) {transpose_b=true} @"mlp"
%4 = matmul(%0, %2) {transpose_b=true} @"mlp"
%5 = silu(%4) @"mlp"
%6 = mul(%5, %3) @"mlp"
output "y" = %6
%7 = exp(%1)
output "e" = %7
)";
  const auto result = run_pass(fuse_shared_input, text);
  EXPECT_FALSE(result.changed);
  EXPECT_EQ(result.text, print_graph(ingot::testing::graph_of(text)));
  EXPECT_EQ(misses(result.context), (std::vector<std::string>{"shared_input: up is read elsewhere"}));
}

TEST(FuseSharedInput, StaysWhereJoiningWouldCopy) {
  const std::string_view text = R"(%0 = input "x" : f32[2,3,4]
%1 = parameter "up" : f32[4,5]
%2 = parameter "gate" : f32[4,5]
%3 = matmul(%0, %1) @"mlp"
%4 = matmul(%0, %2) @"mlp"
%5 = silu(%4) @"mlp"
%6 = mul(%5, %3) @"mlp"
output "y" = %6
)";
  const auto result = run_pass(fuse_shared_input, text);
  EXPECT_FALSE(result.changed);
  EXPECT_EQ(result.text, print_graph(ingot::testing::graph_of(text)));
  EXPECT_EQ(misses(result.context),
            (std::vector<std::string>{"shared_input: up lies [in, out]: joined weights would have to be copied"}));
}

TEST(FuseSharedInput, LeavesASingleProductAlone) {
  const std::string_view text = R"(%0 = input "x" : f32[3,4]
%1 = parameter "w" : f32[5,4]
%2 = matmul(%0, %1) {transpose_b=true}
output "y" = %2
)";
  expect_unchanged(fuse_shared_input, text);
}

TEST(FuseGlu, TakesTheTwoHalvesOfAProduct) {
  const auto result = run_pass(fuse_glu, R"(%0 = input "x" : f32[2,3,8]
%1, %2 = split(%0) {axis=2, sizes=[4,4]} @"mlp"
%3 = silu(%1) @"mlp"
%4 = mul(%2, %3) @"mlp"
output "y" = %4
)");
  EXPECT_TRUE(result.changed);
  EXPECT_EQ(result.text, R"(graph "graph"
%0 = input "x" : f32[2,3,8]
%1 = glu(%0) {activation="silu"} : f32[2,3,4] @"mlp"
output "y" = %1
)");
  expect_unchanged(fuse_glu, result.text);
}

TEST(FuseGlu, StaysWhereTheGateIsTheSecondHalf) {
  const std::string_view text = R"(%0 = input "x" : f32[2,3,8]
%1, %2 = split(%0) {axis=2, sizes=[4,4]} @"mlp"
%3 = silu(%2) @"mlp"
%4 = mul(%1, %3) @"mlp"
output "y" = %4
)";
  const auto result = run_pass(fuse_glu, text);
  EXPECT_FALSE(result.changed);
  EXPECT_EQ(result.text, print_graph(ingot::testing::graph_of(text)));
  EXPECT_EQ(misses(result.context), (std::vector<std::string>{"glu: the gate is not the first half"}));
}

TEST(FuseGlu, StaysWhereTheActivatedGateIsReadElsewhere) {
  const std::string_view text = R"(%0 = input "x" : f32[2,3,8]
%1, %2 = split(%0) {axis=2, sizes=[4,4]} @"mlp"
%3 = silu(%1) @"mlp"
%4 = mul(%2, %3) @"mlp"
output "y" = %4
output "gate" = %3
)";
  const auto result = run_pass(fuse_glu, text);
  EXPECT_FALSE(result.changed);
  EXPECT_EQ(result.text, print_graph(ingot::testing::graph_of(text)));
  EXPECT_EQ(misses(result.context), (std::vector<std::string>{"glu: the activated gate is read elsewhere"}));
}

TEST(FuseGlu, StaysForSeparateProducts) {
  const std::string_view text = R"(%0 = input "x" : f32[2,3,4]
%1 = parameter "up" : f32[5,4]
%2 = parameter "gate" : f32[5,4]
%3 = matmul(%0, %1) {transpose_b=true} @"mlp"
%4 = matmul(%0, %2) {transpose_b=true} @"mlp"
%5 = silu(%4) @"mlp"
%6 = mul(%5, %3) @"mlp"
output "y" = %6
)";
  const auto result = run_pass(fuse_glu, text);
  EXPECT_FALSE(result.changed);
  EXPECT_EQ(result.text, print_graph(ingot::testing::graph_of(text)));
  EXPECT_EQ(misses(result.context), (std::vector<std::string>{"glu: gate and up do not come from one product"}));
}

TEST(FuseLinearCrossEntropy, SeesThroughViews) {
  const auto result = run_pass(fuse_linear_cross_entropy, R"(%0 = input "x" : f32[2,3,4]
%1 = parameter "w" : f32[7,4]
%2 = input "targets" : i32[6]
%3 = input "scale" : f32[]
%4 = matmul(%0, %1) {transpose_b=true} @"loss"
%5 = reshape(%4) {shape=[6,7]} @"loss"
%6 = cross_entropy(%5, %2, %3) @"loss"
output "loss" = %6
)");
  EXPECT_TRUE(result.changed);
  EXPECT_EQ(result.text, R"(graph "graph"
%0 = input "x" : f32[2,3,4]
%1 = parameter "w" : f32[7,4]
%2 = input "targets" : i32[6]
%3 = input "scale" : f32[]
%4 = reshape(%0) {shape=[6,4]} : f32[6,4] @"loss"
%5 = linear_cross_entropy(%4, %1, %2, %3) {transpose_b=true, softcap=0} : f32[] @"loss"
output "loss" = %5
)");
  expect_unchanged(fuse_linear_cross_entropy, result.text);
}

TEST(FuseLinearCrossEntropy, TakesASoftCapAlong) {
  const auto result = run_pass(fuse_linear_cross_entropy, R"(%0 = input "x" : f32[6,4]
%1 = parameter "w" : f32[7,4]
%2 = input "targets" : i32[6]
%3 = input "scale" : f32[]
%4 = matmul(%0, %1) {transpose_b=true} @"loss"
%5 = scale(%4) {factor=0.25} @"loss"
%6 = tanh(%5) @"loss"
%7 = scale(%6) {factor=4} @"loss"
%8 = cross_entropy(%7, %2, %3) @"loss"
output "loss" = %8
)");
  EXPECT_TRUE(result.changed);
  EXPECT_EQ(result.text, R"(graph "graph"
%0 = input "x" : f32[6,4]
%1 = parameter "w" : f32[7,4]
%2 = input "targets" : i32[6]
%3 = input "scale" : f32[]
%4 = linear_cross_entropy(%0, %1, %2, %3) {transpose_b=true, softcap=4} : f32[] @"loss"
output "loss" = %4
)");
}

TEST(FuseLinearCrossEntropy, StaysWhereTanhIsNoCapOfTheLogitsOrIsReadElsewhere) {
  const auto missed = [](const std::string& outer, const std::string& more) {
    const std::string text = R"(%0 = input "x" : f32[6,4]
%1 = parameter "w" : f32[7,4]
%2 = input "targets" : i32[6]
%3 = input "scale" : f32[]
%4 = matmul(%0, %1) {transpose_b=true} @"loss"
%5 = scale(%4) {factor=0.25} @"loss"
%6 = tanh(%5) @"loss"
%7 = scale(%6) {factor=)" + outer +
                             R"(} @"loss"
%8 = cross_entropy(%7, %2, %3) @"loss"
output "loss" = %8
)" + more;
    const auto result = run_pass(fuse_linear_cross_entropy, text);
    EXPECT_FALSE(result.changed);
    EXPECT_EQ(result.text, print_graph(ingot::testing::graph_of(text)));
    return misses(result.context);
  };
  const std::vector<std::string> between{"linear_cross_entropy: scale stands between the product and the loss"};
  EXPECT_EQ(missed("3", ""), between);
  EXPECT_EQ(missed("-4", ""), between);
  EXPECT_EQ(missed("4", "output \"tanh\" = %6\n"), between);
  EXPECT_EQ(missed("4", "output \"scaled\" = %5\n"), between);
}

TEST(FuseLinearCrossEntropy, StaysWhereTheLogitsAreAnOutput) {
  const std::string_view text = R"(%0 = input "x" : f32[2,3,4]
%1 = parameter "w" : f32[7,4]
%2 = input "targets" : i32[6]
%3 = input "scale" : f32[]
%4 = matmul(%0, %1) {transpose_b=true} @"loss"
%5 = reshape(%4) {shape=[6,7]} @"loss"
%6 = cross_entropy(%5, %2, %3) @"loss"
output "loss" = %6
output "logits" = %4
)";
  const auto result = run_pass(fuse_linear_cross_entropy, text);
  EXPECT_FALSE(result.changed);
  EXPECT_EQ(result.text, print_graph(ingot::testing::graph_of(text)));
  EXPECT_EQ(misses(result.context), (std::vector<std::string>{"linear_cross_entropy: the logits are an output"}));
}

TEST(FuseLinearCrossEntropy, NamesWhatStandsBetween) {
  const std::string_view text = R"(%0 = input "x" : f32[2,3,4]
%1 = parameter "w" : f32[7,4]
%2 = input "targets" : i32[6]
%3 = input "scale" : f32[]
%4 = matmul(%0, %1) {transpose_b=true} @"loss"
%5 = reshape(%4) {shape=[6,7]} @"loss"
%6 = tanh(%5) @"loss"
%7 = cross_entropy(%6, %2, %3) @"loss"
output "loss" = %7
)";
  const auto result = run_pass(fuse_linear_cross_entropy, text);
  EXPECT_FALSE(result.changed);
  EXPECT_EQ(result.text, print_graph(ingot::testing::graph_of(text)));
  EXPECT_EQ(misses(result.context),
            (std::vector<std::string>{"linear_cross_entropy: tanh stands between the product and the loss"}));
}

}  // namespace
}  // namespace ingot
