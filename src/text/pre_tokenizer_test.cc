#include "text/pre_tokenizer.h"

#include <gtest/gtest.h>

#include "text/text_test_util.h"

namespace ingot {
namespace {

using PreTokens = std::vector<std::string>;

PreTokens pre_tokens(const Json& json, std::string_view text, bool at_start = true) {
  const auto pre_tokenizer = PreTokenizer::read(JsonPlace(json, "test.json", "pre_tokenizer"));
  if (!pre_tokenizer.ok()) return {pre_tokenizer.error().message};
  PreTokens out;
  pre_tokenizer->split(text, at_start, [&](std::string_view piece) { out.emplace_back(piece); });
  return out;
}

PreTokens split_by(std::string_view behavior, std::string_view text, bool invert = false) {
  return pre_tokens(
      {{"type", "Split"}, {"pattern", {{"String", "-"}}}, {"behavior", std::string(behavior)}, {"invert", invert}},
      text);
}

TEST(PreTokenizer, SplitHasFiveBehaviours) {
  const std::string text = "the-final--countdown";
  EXPECT_EQ(split_by("Removed", text), (PreTokens{"the", "final", "countdown"}));
  EXPECT_EQ(split_by("Isolated", text), (PreTokens{"the", "-", "final", "-", "-", "countdown"}));
  EXPECT_EQ(split_by("MergedWithPrevious", text), (PreTokens{"the-", "final-", "-", "countdown"}));
  EXPECT_EQ(split_by("MergedWithNext", text), (PreTokens{"the", "-final", "-", "-countdown"}));
  EXPECT_EQ(split_by("Contiguous", text), (PreTokens{"the", "-", "final", "--", "countdown"}));
  EXPECT_EQ(split_by("Removed", text, true), (PreTokens{"-", "-", "-"}));
  EXPECT_EQ(split_by("MergedWithNext", "a-b-", true), (PreTokens{"a-", "b-"}));
  EXPECT_EQ(pre_tokens({{"type", "Split"}, {"pattern", {{"Regex", "\\d+"}}}, {"behavior", "Removed"}, {"invert", true}},
                       "a1b22"),
            (PreTokens{"1", "22"}));
  EXPECT_EQ(split_by("Merged", text)[0].find("test.json: pre_tokenizer.behavior: the behavior \"Merged\" (known: "),
            0u);
}

TEST(PreTokenizer, ByteLevelMayPutASpaceFirst) {
  Json byte_level = {{"type", "ByteLevel"}, {"add_prefix_space", true}, {"trim_offsets", true}, {"use_regex", true}};
  EXPECT_EQ(pre_tokens(byte_level, "a b"), (PreTokens{" a", " b"}));
  byte_level["use_regex"] = false;
  EXPECT_EQ(pre_tokens(byte_level, " a b"), (PreTokens{" a b"}));
  byte_level = {{"type", "ByteLevel"}, {"add_prefix_space", false}};
  const Json split = {{"type", "Split"}, {"pattern", {{"String", "-"}}}, {"behavior", "Isolated"}};
  EXPECT_EQ(pre_tokens({{"type", "Sequence"}, {"pretokenizers", {split, byte_level}}}, "a b-c"),
            (PreTokens{"a", " b", "-", "c"}));
}

TEST(PreTokenizer, MetaspaceWritesSpacesAndBeginsPiecesWithThem) {
  const auto metaspace = [](const char* scheme, bool split) {
    return Json{{"type", "Metaspace"}, {"replacement", "_"}, {"prepend_scheme", scheme}, {"split", split}};
  };
  EXPECT_EQ(pre_tokens(metaspace("always", true), "Hey   you"), (PreTokens{"_Hey", "_", "_", "_you"}));
  EXPECT_EQ(pre_tokens(metaspace("always", true), " a"), (PreTokens{"_a"}));
  EXPECT_EQ(pre_tokens(metaspace("always", false), "a b"), (PreTokens{"_a_b"}));
  EXPECT_EQ(pre_tokens(metaspace("always", true), "a", false), (PreTokens{"_a"}));
  EXPECT_EQ(pre_tokens(metaspace("first", true), "a", true), (PreTokens{"_a"}));
  EXPECT_EQ(pre_tokens(metaspace("first", true), "a b", false), (PreTokens{"a", "_b"}));
  EXPECT_EQ(pre_tokens(metaspace("never", true), "a b", true), (PreTokens{"a", "_b"}));
  const Json older = {{"type", "Metaspace"}, {"replacement", "_"}, {"str_rep", "_"}, {"add_prefix_space", false}};
  EXPECT_EQ(pre_tokens(older, "a b"), (PreTokens{"a", "_b"}));
  const Json after_words = {{"type", "Sequence"},
                            {"pretokenizers", {{{"type", "WhitespaceSplit"}}, metaspace("always", true)}}};
  EXPECT_EQ(pre_tokens(after_words, " one \n two"), (PreTokens{"_one", "_two"}));
  EXPECT_EQ(pre_tokens(metaspace("last", true), "a")[0],
            "test.json: pre_tokenizer.prepend_scheme: expected \"always\", \"first\" or \"never\", found \"last\"");
}

TEST(PreTokenizer, ClassesOfCharacters) {
  const std::string text = "Don't stop, 12\xC2\xBD\xE3\x80\x80\xE3\x80\x82 ok_1";  // ½, an ideographic space, 。
  EXPECT_EQ(pre_tokens({{"type", "Whitespace"}}, text),
            (PreTokens{"Don", "'", "t", "stop", ",", "12", "\xC2\xBD", "\xE3\x80\x82", "ok_1"}));
  EXPECT_EQ(pre_tokens({{"type", "WhitespaceSplit"}}, text),
            (PreTokens{"Don't", "stop,", "12\xC2\xBD", "\xE3\x80\x82", "ok_1"}));
  EXPECT_EQ(pre_tokens({{"type", "BertPreTokenizer"}}, text),
            (PreTokens{"Don", "'", "t", "stop", ",", "12\xC2\xBD", "\xE3\x80\x82", "ok", "_", "1"}));
  EXPECT_EQ(pre_tokens({{"type", "Digits"}, {"individual_digits", true}}, "a12b"), (PreTokens{"a", "1", "2", "b"}));
  EXPECT_EQ(pre_tokens({{"type", "Digits"}, {"individual_digits", false}}, "a12b"), (PreTokens{"a", "12", "b"}));
  EXPECT_EQ(pre_tokens({{"type", "Punctuation"}, {"behavior", "Contiguous"}}, "a?!b$"),
            (PreTokens{"a", "?!", "b", "$"}));
  EXPECT_EQ(pre_tokens({{"type", "CharDelimiterSplit"}, {"delimiter", "|"}}, "a|b||c"), (PreTokens{"a", "b", "c"}));
  EXPECT_EQ(pre_tokens({{"type", "WhitespaceSplit"}}, "a\xFF b"), (PreTokens{"a\xFF", "b"}));
}

TEST(PreTokenizer, RefusesOthersByName) {
  EXPECT_EQ(pre_tokens({{"type", "UnicodeScripts"}}, "a")[0],
            "test.json: pre_tokenizer.type: the pre-tokenizer \"UnicodeScripts\" (known: ByteLevel, Split, Metaspace, "
            "Whitespace, WhitespaceSplit, BertPreTokenizer, Punctuation, Digits, CharDelimiterSplit, Sequence) is not "
            "supported");
}

}  // namespace
}  // namespace ingot
