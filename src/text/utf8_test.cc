#include "text/utf8.h"

#include <gtest/gtest.h>

#include <random>

#include "text/text_test_util.h"

namespace ingot {
namespace {

Utf8Char decode(std::string_view text) {
  const auto* p = reinterpret_cast<const unsigned char*>(text.data());
  return decode_utf8(p, p + text.size());
}

TEST(Utf8, DecodesValidCharactersOfEveryLength) {
  for (const char32_t code : {0x0u, 0x7Fu, 0x80u, 0x7FFu, 0x800u, 0xD7FFu, 0xE000u, 0xFFFFu, 0x10000u, 0x10FFFFu}) {
    std::string text;
    append_utf8(code, text);
    EXPECT_EQ(decode(text).code, code);
    EXPECT_EQ(decode(text).size, text.size());
    EXPECT_EQ(valid_utf8_end(text, 0), text.size());
  }
}

TEST(Utf8, RefusesOverlongFormsSurrogatesAndTruncation) {
  for (const std::string_view bytes :
       {"\x80", "\xC0\x80", "\xC1\xBF", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xED\xBF\xBF", "\xF0\x8F\xBF\xBF",
        "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF", "\xC3", "\xE2\x82", "\xF0\x9F\xA6", "\xE2(\xA1"}) {
    EXPECT_EQ(decode(bytes).size, 0) << Json(std::string(bytes)).dump(-1, ' ', true, Json::error_handler_t::replace);
    EXPECT_EQ(valid_utf8_end(bytes, 0), 0u);
  }
}

TEST(Utf8, StretchesOfValidAndInvalidBytesAlternate) {
  const std::string text = "abcdefghij\xC3\xA9\xFF\xE2\x82x";
  EXPECT_EQ(valid_utf8_end(text, 0), 12u);
  EXPECT_EQ(invalid_utf8_end(text, 12), 15u);
  EXPECT_EQ(valid_utf8_end(text, 15), 16u);
}

// Against the definition: a prefix is open where some further bytes make its tail a valid character.
TEST(Utf8, ClosedPrefixHoldsBackWhatMayStillBecomeACharacter) {
  const auto may_become_valid = [](std::string tail) {
    std::vector<std::string> tails{tail};
    for (int i = 0; i < 3; ++i) {
      std::vector<std::string> longer;
      for (const std::string& bytes : tails) {
        for (const unsigned char next : {0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF}) {
          longer.push_back(bytes + static_cast<char>(next));
          if (decode(longer.back()).size == longer.back().size()) return true;
        }
      }
      tails = std::move(longer);
    }
    return false;
  };
  std::mt19937 rng(3);
  constexpr unsigned char kBytes[] = {'a',  0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC1, 0xC2,
                                      0xE0, 0xE1, 0xED, 0xEF, 0xF0, 0xF1, 0xF4, 0xF5, 0xFF};
  for (int i = 0; i < 3000; ++i) {
    std::string bytes(rng() % 6, '\0');
    for (char& byte : bytes) byte = static_cast<char>(kBytes[rng() % std::size(kBytes)]);
    size_t expected = bytes.size();
    for (size_t back = std::min<size_t>(3, bytes.size()); back >= 1; --back) {
      if (may_become_valid(bytes.substr(bytes.size() - back))) {
        expected = bytes.size() - back;
        break;
      }
    }
    ASSERT_EQ(closed_utf8_prefix(bytes), expected) << i;
  }
}

TEST(Utf8, Classes) {
  EXPECT_EQ(classify(U'a'), CharClass::letter);
  EXPECT_EQ(classify(U'中'), CharClass::letter);
  EXPECT_EQ(classify(U'½'), CharClass::number);
  EXPECT_EQ(classify(0x3000), CharClass::space);
  EXPECT_EQ(classify(0x85), CharClass::space);
  EXPECT_EQ(classify(0x180E), CharClass::other);
  EXPECT_EQ(classify(0x13460), CharClass::letter);  // Unicode 16
  EXPECT_EQ(classify(0x10D40), CharClass::number);  // Unicode 16
  EXPECT_EQ(classify(0x10FFFF), CharClass::other);
  EXPECT_TRUE(is_word_char(U'_'));
  EXPECT_TRUE(is_word_char(0x301));
  EXPECT_FALSE(is_word_char(U'-'));
}

TEST(ByteAlphabet, EveryByteThereAndBack) {
  for (int b = 0; b < 256; ++b) {
    const std::string byte(1, static_cast<char>(b));
    EXPECT_EQ(alphabet_to_bytes(bytes_to_alphabet(byte)), byte);
  }
  EXPECT_EQ(bytes_to_alphabet(" \n\xAD"), "\xC4\xA0\xC4\x8A\xC5\x83");
  EXPECT_EQ(alphabet_to_bytes(" "), std::nullopt);
  EXPECT_EQ(alphabet_to_bytes("\xE2\x96\x81"), std::nullopt);
}

}  // namespace
}  // namespace ingot
