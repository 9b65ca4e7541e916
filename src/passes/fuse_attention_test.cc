#include <gtest/gtest.h>

#include "passes/fuse_attention.h"
#include "passes/pack_attention.h"
#include "passes/testing.h"

namespace ingot {
namespace {

using ingot::testing::expect_unchanged;
using ingot::testing::misses;
using ingot::testing::run_pass;

TEST(FuseAttention, TakesTheWholePatternWithGroupedHeadsWindowAndDropout) {
  const auto result = run_pass(fuse_attention, R"(%0 = input "q" : f32[2,3,4,2]
%1 = input "k" : f32[2,3,2,2]
%2 = input "v" : f32[2,3,2,2]
%3 = input "first_visible" : i32[2,3]
%4 = transpose(%0) {permutation=[0,2,1,3]} @"h.0"
%5 = transpose(%1) {permutation=[0,2,1,3]} @"h.0"
%6 = repeat_interleave(%5) {axis=1, repeats=2} @"h.0"
%7 = transpose(%2) {permutation=[0,2,1,3]} @"h.0"
%8 = repeat_interleave(%7) {axis=1, repeats=2} @"h.0"
%9 = matmul(%4, %6) {transpose_b=true} @"h.0"
%10 = scale(%9) {factor=0.5} @"h.0"
%11 = mask_scores(%10, %3) {window=2, fill=-inf} @"h.0"
%12 = softmax(%11) @"h.0"
%13 = dropout(%12) {p=0.25, stream="h.0.drop"} @"h.0"
%14 = matmul(%13, %8) @"h.0"
%15 = transpose(%14) {permutation=[0,2,1,3]} @"h.0"
output "y" = %15
)");
  EXPECT_TRUE(result.changed);
  EXPECT_EQ(result.text, R"(graph "graph"
%0 = input "q" : f32[2,3,4,2]
%1 = input "k" : f32[2,3,2,2]
%2 = input "v" : f32[2,3,2,2]
%3 = input "first_visible" : i32[2,3]
%4, %5 = attention(%0, %1, %2, %3) {scale=0.5, window=2, dropout=0.25, stream="h.0.drop", softcap=0} : f32[2,3,4,2], f32[2,4,3,2] @"h.0"
output "y" = %4
)");
  expect_unchanged(fuse_attention, result.text);
}

// softmax of mask(outer · tanh(inner · q·k)), or with the mask before tanh.
std::string capped_attention(const std::string& outer, bool mask_first) {
  const std::string mask = " {window=2, fill=-inf} @\"h.0\"\n";
  std::string text = R"(%0 = input "q" : f32[2,3,4,2]
%1 = input "k" : f32[2,3,4,2]
%2 = input "v" : f32[2,3,4,2]
%3 = input "first_visible" : i32[2,3]
%4 = transpose(%0) {permutation=[0,2,1,3]} @"h.0"
%5 = transpose(%1) {permutation=[0,2,1,3]} @"h.0"
%6 = transpose(%2) {permutation=[0,2,1,3]} @"h.0"
%7 = matmul(%4, %5) {transpose_b=true} @"h.0"
%8 = scale(%7) {factor=0.125} @"h.0"
)";
  if (mask_first) text += "%9 = mask_scores(%8, %3)" + mask;
  text += mask_first ? "%10 = tanh(%9) @\"h.0\"\n" : "%10 = tanh(%8) @\"h.0\"\n";
  text += "%11 = scale(%10) {factor=" + outer + "} @\"h.0\"\n";
  if (!mask_first) text += "%12 = mask_scores(%11, %3)" + mask;
  text += mask_first ? "%13 = softmax(%11) @\"h.0\"\n" : "%13 = softmax(%12) @\"h.0\"\n";
  return text + R"(%14 = matmul(%13, %6) @"h.0"
%15 = transpose(%14) {permutation=[0,2,1,3]} @"h.0"
output "y" = %15
)";
}

TEST(FuseAttention, TakesASoftCapAlong) {
  const auto result = run_pass(fuse_attention, capped_attention("4", false));
  EXPECT_TRUE(result.changed);
  EXPECT_EQ(result.text, R"(graph "graph"
%0 = input "q" : f32[2,3,4,2]
%1 = input "k" : f32[2,3,4,2]
%2 = input "v" : f32[2,3,4,2]
%3 = input "first_visible" : i32[2,3]
%4, %5 = attention(%0, %1, %2, %3) {scale=0.5, window=2, dropout=0, stream="", softcap=4} : f32[2,3,4,2], f32[2,4,3,2] @"h.0"
output "y" = %4
)");
}

TEST(FuseAttention, StaysWhereTanhIsNoSoftCap) {
  for (const std::string& text : {capped_attention("4", true), capped_attention("-4", false)}) {
    const auto result = run_pass(fuse_attention, text);
    EXPECT_FALSE(result.changed);
    EXPECT_EQ(result.text, print_graph(ingot::testing::graph_of(text)));
  }
}

TEST(FuseAttention, StaysWhereTheScoresAreAnOutput) {
  const std::string_view text = R"(%0 = input "q" : f32[2,3,4,2]
%1 = input "k" : f32[2,3,2,2]
%2 = input "v" : f32[2,3,2,2]
%3 = input "first_visible" : i32[2,3]
%4 = transpose(%0) {permutation=[0,2,1,3]} @"h.0"
%5 = transpose(%1) {permutation=[0,2,1,3]} @"h.0"
%6 = repeat_interleave(%5) {axis=1, repeats=2} @"h.0"
%7 = transpose(%2) {permutation=[0,2,1,3]} @"h.0"
%8 = repeat_interleave(%7) {axis=1, repeats=2} @"h.0"
%9 = matmul(%4, %6) {transpose_b=true} @"h.0"
%10 = scale(%9) {factor=0.5} @"h.0"
%11 = mask_scores(%10, %3) {window=2, fill=-inf} @"h.0"
%12 = softmax(%11) @"h.0"
%13 = dropout(%12) {p=0.25, stream="h.0.drop"} @"h.0"
%14 = matmul(%13, %8) @"h.0"
%15 = transpose(%14) {permutation=[0,2,1,3]} @"h.0"
output "y" = %15
output "scores" = %10
)";
  const auto result = run_pass(fuse_attention, text);
  EXPECT_FALSE(result.changed);
  EXPECT_EQ(result.text, print_graph(ingot::testing::graph_of(text)));
  EXPECT_EQ(misses(result.context), (std::vector<std::string>{"attention: the scores are an output"}));
}

TEST(FuseAttention, StaysWhereTheWeightsAreReadElsewhere) {
  const std::string_view text = R"(%0 = input "q" : f32[2,3,4,2]
%1 = input "k" : f32[2,3,2,2]
%2 = input "v" : f32[2,3,2,2]
%3 = input "first_visible" : i32[2,3]
%4 = transpose(%0) {permutation=[0,2,1,3]} @"h.0"
%5 = transpose(%1) {permutation=[0,2,1,3]} @"h.0"
%6 = repeat_interleave(%5) {axis=1, repeats=2} @"h.0"
%7 = transpose(%2) {permutation=[0,2,1,3]} @"h.0"
%8 = repeat_interleave(%7) {axis=1, repeats=2} @"h.0"
%9 = matmul(%4, %6) {transpose_b=true} @"h.0"
%10 = scale(%9) {factor=0.5} @"h.0"
%11 = mask_scores(%10, %3) {window=2, fill=-inf} @"h.0"
%12 = softmax(%11) @"h.0"
%13 = dropout(%12) {p=0.25, stream="h.0.drop"} @"h.0"
%14 = matmul(%13, %8) @"h.0"
%15 = transpose(%14) {permutation=[0,2,1,3]} @"h.0"
output "y" = %15
%16 = exp(%12)
output "e" = %16
)";
  const auto result = run_pass(fuse_attention, text);
  EXPECT_FALSE(result.changed);
  EXPECT_EQ(result.text, print_graph(ingot::testing::graph_of(text)));
  EXPECT_EQ(misses(result.context), (std::vector<std::string>{"attention: the weights are read elsewhere"}));
}

TEST(FuseAttention, StaysWithoutACausalMask) {
  const std::string_view text = R"(%0 = input "q" : f32[2,3,4,2]
%1 = input "k" : f32[2,3,2,2]
%2 = input "v" : f32[2,3,2,2]
%3 = input "first_visible" : i32[2,3]
%4 = transpose(%0) {permutation=[0,2,1,3]} @"h.0"
%5 = transpose(%1) {permutation=[0,2,1,3]} @"h.0"
%6 = repeat_interleave(%5) {axis=1, repeats=2} @"h.0"
%7 = transpose(%2) {permutation=[0,2,1,3]} @"h.0"
%8 = repeat_interleave(%7) {axis=1, repeats=2} @"h.0"
%9 = matmul(%4, %6) {transpose_b=true} @"h.0"
%10 = scale(%9) {factor=0.5} @"h.0"
%12 = softmax(%10) @"h.0"
%13 = dropout(%12) {p=0.25, stream="h.0.drop"} @"h.0"
%14 = matmul(%13, %8) @"h.0"
%15 = transpose(%14) {permutation=[0,2,1,3]} @"h.0"
output "y" = %15
)";
  const auto result = run_pass(fuse_attention, text);
  EXPECT_FALSE(result.changed);
  EXPECT_EQ(result.text, print_graph(ingot::testing::graph_of(text)));
  EXPECT_EQ(misses(result.context), (std::vector<std::string>{"attention: no causal mask on the scores"}));
}

TEST(FuseAttention, StaysWhereMaskedScoresAreMerelySmall) {
  const std::string_view text = R"(%0 = input "q" : f32[2,3,4,2]
%1 = input "k" : f32[2,3,2,2]
%2 = input "v" : f32[2,3,2,2]
%3 = input "first_visible" : i32[2,3]
%4 = transpose(%0) {permutation=[0,2,1,3]} @"h.0"
%5 = transpose(%1) {permutation=[0,2,1,3]} @"h.0"
%6 = repeat_interleave(%5) {axis=1, repeats=2} @"h.0"
%7 = transpose(%2) {permutation=[0,2,1,3]} @"h.0"
%8 = repeat_interleave(%7) {axis=1, repeats=2} @"h.0"
%9 = matmul(%4, %6) {transpose_b=true} @"h.0"
%10 = scale(%9) {factor=0.5} @"h.0"
%11 = mask_scores(%10, %3) {window=2, fill=-1e9} @"h.0"
%12 = softmax(%11) @"h.0"
%13 = dropout(%12) {p=0.25, stream="h.0.drop"} @"h.0"
%14 = matmul(%13, %8) @"h.0"
%15 = transpose(%14) {permutation=[0,2,1,3]} @"h.0"
output "y" = %15
)";
  const auto result = run_pass(fuse_attention, text);
  EXPECT_FALSE(result.changed);
  EXPECT_EQ(result.text, print_graph(ingot::testing::graph_of(text)));
  EXPECT_EQ(misses(result.context), (std::vector<std::string>{"attention: masked scores are not minus infinity"}));
}

TEST(FuseAttention, StaysWhereItIsSwitchedOffForALayer) {
  const std::string_view text = R"(%0 = input "q" : f32[2,3,4,2]
%1 = input "k" : f32[2,3,2,2]
%2 = input "v" : f32[2,3,2,2]
%3 = input "first_visible" : i32[2,3]
%4 = transpose(%0) {permutation=[0,2,1,3]} @"h.0"
%5 = transpose(%1) {permutation=[0,2,1,3]} @"h.0"
%6 = repeat_interleave(%5) {axis=1, repeats=2} @"h.0"
%7 = transpose(%2) {permutation=[0,2,1,3]} @"h.0"
%8 = repeat_interleave(%7) {axis=1, repeats=2} @"h.0"
%9 = matmul(%4, %6) {transpose_b=true} @"h.0"
%10 = scale(%9) {factor=0.5} @"h.0"
%11 = mask_scores(%10, %3) {window=2, fill=-inf} @"h.0"
%12 = softmax(%11) @"h.0"
%13 = dropout(%12) {p=0.25, stream="h.0.drop"} @"h.0"
%14 = matmul(%13, %8) @"h.0"
%15 = transpose(%14) {permutation=[0,2,1,3]} @"h.0"
output "y" = %15
)";
  const auto result = run_pass(fuse_attention, text, {.no_fuse = {"h.0*"}});
  EXPECT_FALSE(result.changed);
  EXPECT_EQ(result.text, print_graph(ingot::testing::graph_of(text)));
  EXPECT_EQ(misses(result.context), (std::vector<std::string>{"attention: switched off by compile.no_fuse"}));
}

TEST(FuseAttention, SaysNothingOfASoftmaxThatIsNoAttention) {
  const std::string_view text = R"(%0 = input "x" : f32[2,3]
%1 = softmax(%0)
output "y" = %1
)";
  EXPECT_TRUE(run_pass(fuse_attention, text).context.notes.empty());
}

// k may stand transposed before the product, the result untransposed after it, and heads may be repeated before they
// are moved.
TEST(FuseAttention, TakesOtherSpellings) {
  const auto result = run_pass(fuse_attention, R"(%0 = input "q" : f32[2,4,3,2]
%1 = input "k" : f32[2,3,2,2]
%2 = input "v" : f32[2,3,2,2]
%3 = input "first_visible" : i32[2,3]
%5 = repeat_interleave(%1) {axis=2, repeats=2}
%6 = transpose(%5) {permutation=[0,2,3,1]}
%7 = repeat_interleave(%2) {axis=2, repeats=2}
%8 = transpose(%7) {permutation=[0,2,1,3]}
%9 = matmul(%0, %6)
%10 = mask_scores(%9, %3) {window=0, fill=-inf}
%11 = scale(%10) {factor=0.5}
%12 = softmax(%11)
%13 = matmul(%12, %8)
output "y" = %13
)");
  EXPECT_TRUE(result.changed);
  EXPECT_EQ(result.text, R"(graph "graph"
%0 = input "q" : f32[2,4,3,2]
%1 = input "k" : f32[2,3,2,2]
%2 = input "v" : f32[2,3,2,2]
%3 = input "first_visible" : i32[2,3]
%4 = transpose(%0) {permutation=[0,2,1,3]} : f32[2,3,4,2]
%5, %6 = attention(%4, %1, %2, %3) {scale=0.5, window=0, dropout=0, stream="", softcap=0} : f32[2,3,4,2], f32[2,4,3,2]
%7 = transpose(%5) {permutation=[0,2,1,3]} : f32[2,4,3,2]
output "y" = %7
)");
}

TEST(PackAttention, RotatesQueriesAndKeysInTheWhole) {
  const auto result = run_pass(pack_attention, R"(%0 = input "qkv" : f32[2,3,16]
%1 = input "positions" : i32[2,3]
%2 = input "first_visible" : i32[2,3]
%3, %4, %5 = split(%0) {axis=2, sizes=[8,4,4]} @"attn"
%6 = reshape(%3) {shape=[2,3,4,2]} @"attn"
%7 = reshape(%4) {shape=[2,3,2,2]} @"attn"
%8 = reshape(%5) {shape=[2,3,2,2]} @"attn"
%9 = rope(%6, %1) {inv_freq=[0.5]} @"attn"
%10 = rope(%7, %1) {inv_freq=[0.5]} @"attn"
%11, %12 = attention(%9, %10, %8, %2) {scale=0.5, window=2, dropout=0.1, stream="a"} @"attn"
%13 = reshape(%11) {shape=[2,3,8]} @"attn"
output "y" = %13
)");
  EXPECT_TRUE(result.changed);
  EXPECT_EQ(result.text, R"(graph "graph"
%0 = input "qkv" : f32[2,3,16]
%1 = input "positions" : i32[2,3]
%2 = input "first_visible" : i32[2,3]
%3 = reshape(%0) {shape=[2,3,8,2]} : f32[2,3,8,2] @"attn"
%4 = rope(%3, %1) {inv_freq=[0.5], rotated_heads=6, inverse=false} : f32[2,3,8,2] @"attn"
%5 = reshape(%4) {shape=[2,3,16]} : f32[2,3,16] @"attn"
%6, %7 = attention_packed(%5, %2) {heads=4, kv_heads=2, head_dim=2, scale=0.5, window=2, dropout=0.1, stream="a", softcap=0} : f32[2,3,8], f32[2,4,3,2] @"attn"
output "y" = %6
)");
  expect_unchanged(pack_attention, result.text);
}

TEST(PackAttention, StaysWithANormOnTheQueries) {
  const std::string_view text = R"(%0 = input "qkv" : f32[2,3,16]
%1 = input "positions" : i32[2,3]
%2 = input "first_visible" : i32[2,3]
%3, %4, %5 = split(%0) {axis=2, sizes=[8,4,4]} @"attn"
%6 = reshape(%3) {shape=[2,3,4,2]} @"attn"
%7 = reshape(%4) {shape=[2,3,2,2]} @"attn"
%8 = reshape(%5) {shape=[2,3,2,2]} @"attn"
%20 = softmax(%6) @"attn"
%9 = rope(%20, %1) {inv_freq=[0.5]} @"attn"
%10 = rope(%7, %1) {inv_freq=[0.5]} @"attn"
%11, %12 = attention(%9, %10, %8, %2) {scale=0.5, window=2, dropout=0.1, stream="a"} @"attn"
%13 = reshape(%11) {shape=[2,3,8]} @"attn"
output "y" = %13
)";
  const auto result = run_pass(pack_attention, text);
  EXPECT_FALSE(result.changed);
  EXPECT_EQ(result.text, print_graph(ingot::testing::graph_of(text)));
  EXPECT_EQ(misses(result.context), (std::vector<std::string>{"attention_packed: softmax stands before attention"}));
}

TEST(PackAttention, StaysWhereOnlyQueriesAreRotated) {
  const std::string_view text = R"(%0 = input "qkv" : f32[2,3,16]
%1 = input "positions" : i32[2,3]
%2 = input "first_visible" : i32[2,3]
%3, %4, %5 = split(%0) {axis=2, sizes=[8,4,4]} @"attn"
%6 = reshape(%3) {shape=[2,3,4,2]} @"attn"
%7 = reshape(%4) {shape=[2,3,2,2]} @"attn"
%8 = reshape(%5) {shape=[2,3,2,2]} @"attn"
%9 = rope(%6, %1) {inv_freq=[0.5]} @"attn"
%11, %12 = attention(%9, %7, %8, %2) {scale=0.5, window=2, dropout=0.1, stream="a"} @"attn"
%13 = reshape(%11) {shape=[2,3,8]} @"attn"
output "y" = %13
)";
  const auto result = run_pass(pack_attention, text);
  EXPECT_FALSE(result.changed);
  EXPECT_EQ(result.text, print_graph(ingot::testing::graph_of(text)));
  EXPECT_EQ(misses(result.context),
            (std::vector<std::string>{"attention_packed: queries and keys are not rotated alike"}));
}

TEST(PackAttention, StaysWhereValuesLieBeforeKeys) {
  const std::string_view text = R"(%0 = input "qkv" : f32[2,3,16]
%1 = input "positions" : i32[2,3]
%2 = input "first_visible" : i32[2,3]
%3, %4, %5 = split(%0) {axis=2, sizes=[8,4,4]} @"attn"
%6 = reshape(%3) {shape=[2,3,4,2]} @"attn"
%7 = reshape(%4) {shape=[2,3,2,2]} @"attn"
%8 = reshape(%5) {shape=[2,3,2,2]} @"attn"
%11, %12 = attention(%6, %8, %7, %2) {scale=0.5, window=2, dropout=0.1, stream="a"} @"attn"
%13 = reshape(%11) {shape=[2,3,8]} @"attn"
output "y" = %13
)";
  const auto result = run_pass(pack_attention, text);
  EXPECT_FALSE(result.changed);
  EXPECT_EQ(result.text, print_graph(ingot::testing::graph_of(text)));
  EXPECT_EQ(misses(result.context),
            (std::vector<std::string>{"attention_packed: queries, keys and values do not lie one behind the other"}));
}

TEST(PackAttention, StaysForSeparateProducts) {
  const std::string_view text = R"(graph "graph"
%0 = input "q" : f32[2,3,4,2]
%1 = input "k" : f32[2,3,2,2]
%2 = input "v" : f32[2,3,2,2]
%3 = input "first_visible" : i32[2,3]
%4, %5 = attention(%0, %1, %2, %3) {scale=0.5, window=2, dropout=0.25, stream="h.0.drop", softcap=0} : f32[2,3,4,2], f32[2,4,3,2] @"h.0"
output "y" = %4
)";
  const auto result = run_pass(pack_attention, text);
  EXPECT_FALSE(result.changed);
  EXPECT_EQ(result.text, print_graph(ingot::testing::graph_of(text)));
  EXPECT_EQ(misses(result.context),
            (std::vector<std::string>{"attention_packed: queries, keys and values do not come from one product"}));
}

}  // namespace
}  // namespace ingot
