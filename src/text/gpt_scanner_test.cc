#include "text/gpt_scanner.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "text/pre_tokenizer.h"
#include "text/regex.h"
#include "text/text_test_util.h"

namespace ingot {
namespace {

const std::string kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
const std::string kQwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

std::vector<std::string> pieces_of(const Splitter& splitter, std::string_view text) {
  std::vector<std::string> pieces;
  splitter.split(text, [&](std::string_view piece) { pieces.emplace_back(piece); });
  return pieces;
}

std::vector<std::string> scan(const std::string& pattern, std::string_view text) {
  std::vector<std::string> pieces;
  GptScanner::for_pattern(pattern)->split(text, [&](std::string_view piece) { pieces.emplace_back(piece); });
  return pieces;
}

using Pieces = std::vector<std::string>;

TEST(GptScanner, KnowsItsPatternsAlone) {
  EXPECT_TRUE(GptScanner::for_pattern(kGpt2Pattern).has_value());
  EXPECT_TRUE(GptScanner::for_pattern(kLlama3).has_value());
  EXPECT_TRUE(GptScanner::for_pattern(kQwen2).has_value());
  EXPECT_FALSE(GptScanner::for_pattern("").has_value());
  EXPECT_FALSE(GptScanner::for_pattern(std::string(kGpt2Pattern) + "|x").has_value());
  EXPECT_FALSE(GptScanner::for_pattern(R"(\s+)").has_value());
}

TEST(GptScanner, CutsAsGpt2Does) {
  const std::string gpt2(kGpt2Pattern);
  EXPECT_EQ(scan(gpt2, ""), Pieces());
  EXPECT_EQ(scan(gpt2, "I don't know, we'LL see  it's 12a"),
            (Pieces{"I", " don", "'t", " know", ",", " we", "'", "LL", " see", " ", " it", "'s", " 12", "a"}));
  EXPECT_EQ(scan(gpt2, "a \n\n b\t\tc   "), (Pieces{"a", " \n\n", " b", "\t", "\t", "c", "   "}));
  EXPECT_EQ(scan(gpt2, " "), (Pieces{" "}));
}

TEST(GptScanner, CutsAsLlama3Does) {
  EXPECT_EQ(scan(kLlama3, "12345 we'LL!\n\n  x\ty"), (Pieces{"123", "45", " we", "'LL", "!\n\n", " ", " x", "\ty"}));
  EXPECT_EQ(scan(kQwen2, "12 a"), (Pieces{"1", "2", " a"}));
}

TEST(GptScanner, InvalidBytesAreEndsOfTextAndPieces) {
  EXPECT_EQ(scan(std::string(kGpt2Pattern), "ab\xFF\xFE  \xE2\x82 c"),
            (Pieces{"ab", "\xFF\xFE", "  ", "\xE2\x82", " c"}));
}

// Texts of every class of character, code points of every plane and stray bytes.
TEST(GptScanner, EqualsTheRegexOnRandomText) {
  std::mt19937 rng(7);
  for (const std::string& pattern : {std::string(kGpt2Pattern), kLlama3, kQwen2}) {
    const auto regex = make_regex_splitter(pattern, {}, /*allow_scanner=*/false);
    ASSERT_TRUE(regex.ok()) << regex.error().message;
    for (int i = 0; i < 4000; ++i) {
      const std::string text = test::random_text(rng, 1 + rng() % 40);
      ASSERT_EQ(scan(pattern, text), pieces_of(**regex, text)) << pattern;
    }
    const std::string bytes = test::random_bytes(rng, 20000);
    ASSERT_EQ(scan(pattern, bytes), pieces_of(**regex, bytes));
  }
}

// Each code point between letters and digits: its class is that of the regex engine.
TEST(GptScanner, ClassifiesEveryCodePointAsTheRegexDoes) {
  const auto regex = make_regex_splitter(std::string(kGpt2Pattern), {}, false);
  ASSERT_TRUE(regex.ok());
  std::string text;
  for (char32_t code = 1; code < 0x110000; ++code) {
    if (code == 0xD800) code = 0xE000;
    append_utf8(code, text);
    text += "a1.";
    if (code % 0x1000 != 0xFFF) continue;
    ASSERT_TRUE(scan(std::string(kGpt2Pattern), text) == pieces_of(**regex, text))
        << "up to code point " << static_cast<uint32_t>(code);
    text.clear();
  }
}

TEST(Regex, RefusesWhatItWouldMisread) {
  EXPECT_FALSE(Regex::compile("(").ok());
  EXPECT_FALSE(Regex::compile("[a[bc]]").ok());
  EXPECT_FALSE(Regex::compile("[a-z&&b]").ok());
  EXPECT_TRUE(Regex::compile(R"([[:alpha:]\s]+)").ok());
}

TEST(Regex, GivesEmptyMatchesAndGetsOn) {
  const auto regex = Regex::compile("x*");
  ASSERT_TRUE(regex.ok());
  std::vector<std::pair<size_t, size_t>> found;
  regex->find_all("axxé", [&](size_t begin, size_t end) { found.emplace_back(begin, end); });
  EXPECT_EQ(found, (std::vector<std::pair<size_t, size_t>>{{0, 0}, {1, 3}, {3, 3}}));
}

TEST(Regex, CatastrophicPatternEndsTheSearchInsteadOfHanging) {
  const auto splitter = make_regex_splitter("(a+)+b", {});
  ASSERT_TRUE(splitter.ok());
  const std::string text(40, 'a');
  std::string joined;
  for (const std::string& piece : pieces_of(**splitter, text)) joined += piece;
  EXPECT_EQ(joined, text);
}

}  // namespace
}  // namespace ingot
