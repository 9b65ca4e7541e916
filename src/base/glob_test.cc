#include "base/glob.h"

#include <gtest/gtest.h>

#include <string>

namespace ingot {
namespace {

TEST(Glob, MatchesTheWholeNameOnly) {
  EXPECT_TRUE(glob_match("lm_head.weight", "lm_head.weight"));
  EXPECT_FALSE(glob_match("lm_head", "lm_head.weight"));
  EXPECT_FALSE(glob_match("weight", "lm_head.weight"));
  EXPECT_FALSE(glob_match("LM_head.weight", "lm_head.weight"));
  EXPECT_TRUE(glob_match("", ""));
  EXPECT_FALSE(glob_match("", "a"));
  EXPECT_FALSE(glob_match("a", ""));
}

TEST(Glob, StarIsAnyRunAlsoTheEmptyOne) {
  EXPECT_TRUE(glob_match("*", ""));
  EXPECT_TRUE(glob_match("*embed*", "model.embed_tokens.weight"));
  EXPECT_TRUE(glob_match("model.layers.*.mlp.*", "model.layers.11.mlp.up_proj.weight"));
  EXPECT_FALSE(glob_match("model.layers.*.mlp.*", "model.layers.11.self_attn.q_proj.weight"));
  EXPECT_TRUE(glob_match("**a**", "a"));
  EXPECT_TRUE(glob_match("*ab", "aab"));
  EXPECT_TRUE(glob_match("*.bias", "h.0.bias.bias"));
}

TEST(Glob, QuestionMarkIsOneByte) {
  EXPECT_TRUE(glob_match("h.?.ln", "h.3.ln"));
  EXPECT_FALSE(glob_match("h.?.ln", "h.13.ln"));
  EXPECT_FALSE(glob_match("h.?", "h."));
}

TEST(Glob, SetsHoldRangesAndCanBeNegated) {
  EXPECT_TRUE(glob_match("layers.[0-3].*", "layers.2.w"));
  EXPECT_FALSE(glob_match("layers.[0-3].*", "layers.4.w"));
  EXPECT_TRUE(glob_match("[!ab]x", "cx"));
  EXPECT_FALSE(glob_match("[!ab]x", "ax"));
  EXPECT_TRUE(glob_match("[qkv]_proj", "k_proj"));
  EXPECT_TRUE(glob_match("[]]", "]"));
  EXPECT_TRUE(glob_match("[a-]", "-"));
  EXPECT_TRUE(glob_match("*[12]", "layer2"));
}

TEST(Glob, AnUnclosedSetIsItself) {
  EXPECT_TRUE(glob_match("[ab", "[ab"));
  EXPECT_FALSE(glob_match("[ab", "a"));
  EXPECT_TRUE(glob_match("[", "["));
}

TEST(Glob, ManyStarsStayCheap) {
  std::string pattern;
  for (int i = 0; i < 200; ++i) pattern += "a*";
  EXPECT_FALSE(glob_match(pattern + "b", std::string(20000, 'a')));
}

}  // namespace
}  // namespace ingot
