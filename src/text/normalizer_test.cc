#include "text/normalizer.h"

#include <gtest/gtest.h>

#include "text/precompiled_map.h"
#include "text/text_test_util.h"

namespace ingot {
namespace {

std::string normalized(const Json& json, std::string_view text) {
  const auto normalizer = Normalizer::read(JsonPlace(json, "t.json", "normalizer"));
  return normalizer.ok() ? normalizer->apply(text) : "error: " + normalizer.error().message;
}

TEST(Normalizer, OneByOne) {
  EXPECT_EQ(normalized({{"type", "Lowercase"}},
                       "\xC3\x84"
                       "B\xC4\xB0\xFF"),
            "\xC3\xA4"
            "bi\xCC\x87\xFF");
  EXPECT_EQ(normalized({{"type", "Strip"}, {"strip_left", true}, {"strip_right", false}}, " \na \n"), "a \n");
  EXPECT_EQ(normalized({{"type", "Strip"}, {"strip_left", false}, {"strip_right", true}}, " \na\xE3\x80\x80"), " \na");
  EXPECT_EQ(normalized({{"type", "Strip"}, {"strip_left", true}, {"strip_right", true}}, " \n "), "");
  EXPECT_EQ(normalized({{"type", "Nmt"}},
                       "a\x01"
                       "b\tc\xEF\xBB\xBF"
                       "d"),
            "ab c d");
  EXPECT_EQ(normalized({{"type", "Replace"}, {"pattern", {{"Regex", " {2,}"}}}, {"content", "_"}}, "a  b c    d"),
            "a_b c_d");
  EXPECT_EQ(normalized({{"type", "Sequence"}, {"normalizers", {{{"type", "NFD"}}, {{"type", "StripAccents"}}}}},
                       "\xC3\xA9\xE1\xBA\xAD"),
            "ea");
  EXPECT_EQ(normalized({{"type", "BertNormalizer"}}, "H\xC3\xA9\tllo\xC2\xA0\x01\xE4\xB8\xAD"),
            "he llo  \xE4\xB8\xAD ");
  EXPECT_EQ(normalized({{"type", "BertNormalizer"}, {"lowercase", false}, {"strip_accents", nullptr}}, "H\xC3\xA9"),
            "H\xC3\xA9");
}

// As Hugging Face's library, which knows Unicode 9: U+32FF (Unicode 12.1) stays, what surrounds it does not.
TEST(Normalizer, NormalFormsLeaveAloneWhatTheLibraryDoesNotKnow) {
  EXPECT_EQ(normalized({{"type", "NFKC"}},
                       "\xEF\xBC\xA1\xE3\x8B\xBF\xEF\xBC\xA2\xFF"
                       "e\xCC\x81"),
            "A\xE3\x8B\xBF"
            "B\xFF\xC3\xA9");
}

TEST(Normalizer, TextsThatGrowTooMuchAreRefused) {
  Json steps = Json::array();
  for (int i = 0; i < 20; ++i)
    steps.push_back({{"type", "Replace"}, {"pattern", {{"String", "a"}}}, {"content", "aa"}});
  EXPECT_EQ(normalized({{"type", "Sequence"}, {"normalizers", steps}}, "a"),
            "error: t.json: normalizer.normalizers[12]: a text made more than 4096 times as long is not supported");
}

TEST(PrecompiledMap, DamagedRulesAreRefusedOrHarmless) {
  EXPECT_EQ(normalized({{"type", "Precompiled"}, {"precompiled_charsmap", "x"}}, "a"),
            "error: t.json: normalizer.precompiled_charsmap: base64 comes in fours of characters, found 1");
  EXPECT_EQ(normalized({{"type", "Precompiled"}, {"precompiled_charsmap", "!AAA"}}, "a"),
            "error: t.json: normalizer.precompiled_charsmap: the byte at 0 is no base64");
  EXPECT_FALSE(PrecompiledMap::read("").ok());
  EXPECT_FALSE(PrecompiledMap::read(std::string("\x08\0\0\0\0\0\0\0", 8)).ok());
  EXPECT_FALSE(PrecompiledMap::read(std::string("\x04\0\0\0\0\0\0\0\xFF", 9)).ok());
  std::mt19937 rng(5);
  for (int i = 0; i < 2000; ++i) {
    std::string bytes = test::random_bytes(rng, 4 + 4 * (1 + rng() % 64));
    for (char& byte : bytes) {
      if (rng() % 3 == 0) byte = static_cast<char>(rng() % 4);
    }
    const auto units = static_cast<char>(bytes.size() / 4 - 1);
    bytes.replace(0, 4, {static_cast<char>(units * 4), static_cast<char>(units * 4 >> 8), 0, 0});
    const auto map = PrecompiledMap::read(bytes + "abc" + std::string(1, '\0') + "d");
    ASSERT_TRUE(map.ok()) << map.error().message;
    (void)map->apply(test::random_text(rng, 50));
  }
}

TEST(Base64, KnownTexts) {  // RFC 4648, section 10
  EXPECT_EQ(*decode_base64(""), "");
  EXPECT_EQ(*decode_base64("Zg=="), "f");
  EXPECT_EQ(*decode_base64("Zm8="), "fo");
  EXPECT_EQ(*decode_base64("Zm9v"), "foo");
  EXPECT_EQ(*decode_base64("Zm9vYmE="), "fooba");
  EXPECT_EQ(*decode_base64("+/8A"), std::string("\xFB\xFF\0", 3));
  for (const char* wrong : {"Z", "Zg=", "Z===", "=Zg=", "Zm9v\n", "Zm-v"})
    EXPECT_FALSE(decode_base64(wrong).ok()) << wrong;
}

}  // namespace
}  // namespace ingot
