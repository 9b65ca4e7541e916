#include "text/normalizer.h"

#include <gtest/gtest.h>

#include <array>

#include "text/char_properties.h"
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

// Runs of characters that a form keeps, with marks, jamo and others between them. Expected: Python's unicodedata.
TEST(Normalizer, FormsOfMixedTextAreThoseOfTheWholeText) {
  struct Case {
    const char8_t* text;
    std::array<const char8_t*, 4> forms;  // NFC, NFD, NFKC, NFKD
  };
  const auto plain = [](const char8_t* text) { return std::string(reinterpret_cast<const char*>(text)); };
  const Case cases[] = {
      {u8"\u300A\uFF01\uFF45a\u1EB9\u00E9\u6587\u300A  ",
       {u8"\u300A\uFF01\uFF45a\u1EB9\u00E9\u6587\u300A  ", u8"\u300A\uFF01\uFF45ae\u0323e\u0301\u6587\u300A  ",
        u8"\u300A!ea\u1EB9\u00E9\u6587\u300A  ", u8"\u300A!eae\u0323e\u0301\u6587\u300A  "}},
      {u8"\u03A9a\u0308\uFF45a\uAC00\u2014\uFB01\uFF45 ",
       {u8"\u03A9\u00E4\uFF45a\uAC00\u2014\uFB01\uFF45 ", u8"\u03A9a\u0308\uFF45a\u1100\u1161\u2014\uFB01\uFF45 ",
        u8"\u03A9\u00E4ea\uAC00\u2014fie ", u8"\u03A9a\u0308ea\u1100\u1161\u2014fie "}},
      {u8"\u3099\u6587\u2026\u212B\u2014\u0935\u093C\u00B0\u0301\uF900",
       {u8"\u3099\u6587\u2026\u00C5\u2014\u0935\u093C\u00B0\u0301\u8C48",
        u8"\u3099\u6587\u2026A\u030A\u2014\u0935\u093C\u00B0\u0301\u8C48",
        u8"\u3099\u6587...\u00C5\u2014\u0935\u093C\u00B0\u0301\u8C48",
        u8"\u3099\u6587...A\u030A\u2014\u0935\u093C\u00B0\u0301\u8C48"}},
      {u8"\u1112\u2126\u093C\u1161\u093Cu\u6587o \u2026",
       {u8"\u1112\u03A9\u093C\u1161\u093Cu\u6587o \u2026", u8"\u1112\u03A9\u093C\u1161\u093Cu\u6587o \u2026",
        u8"\u1112\u03A9\u093C\u1161\u093Cu\u6587o ...", u8"\u1112\u03A9\u093C\u1161\u093Cu\u6587o ..."}},
      {u8"\u3099\uFF01\u2001\u2126\uAC00eo\u300A.\u212B",
       {u8"\u3099\uFF01\u2003\u03A9\uAC00eo\u300A.\u00C5", u8"\u3099\uFF01\u2003\u03A9\u1100\u1161eo\u300A.A\u030A",
        u8"\u3099! \u03A9\uAC00eo\u300A.\u00C5", u8"\u3099! \u03A9\u1100\u1161eo\u300A.A\u030A"}},
      {u8"\u0338\u2126 \u2001\u3002\uFF01\u3099\u03A9\u00E9\uFB01",
       {u8"\u0338\u03A9 \u2003\u3002\uFF01\u3099\u03A9\u00E9\uFB01",
        u8"\u0338\u03A9 \u2003\u3002\uFF01\u3099\u03A9e\u0301\uFB01", u8"\u0338\u03A9  \u3002!\u3099\u03A9\u00E9fi",
        u8"\u0338\u03A9  \u3002!\u3099\u03A9e\u0301fi"}},
      {u8"\u03A9\u00B0\u2026\u2126\uFF01\u0338\u00B0\u2019\uAC00\u0301",
       {u8"\u03A9\u00B0\u2026\u03A9\uFF01\u0338\u00B0\u2019\uAC00\u0301",
        u8"\u03A9\u00B0\u2026\u03A9\uFF01\u0338\u00B0\u2019\u1100\u1161\u0301",
        u8"\u03A9\u00B0...\u03A9!\u0338\u00B0\u2019\uAC00\u0301",
        u8"\u03A9\u00B0...\u03A9!\u0338\u00B0\u2019\u1100\u1161\u0301"}},
      {u8"\u0301\uAC00\u212B\u2126Z\u2019\uAC00\u2014a\u0338",
       {u8"\u0301\uAC00\u00C5\u03A9Z\u2019\uAC00\u2014a\u0338",
        u8"\u0301\u1100\u1161A\u030A\u03A9Z\u2019\u1100\u1161\u2014a\u0338",
        u8"\u0301\uAC00\u00C5\u03A9Z\u2019\uAC00\u2014a\u0338",
        u8"\u0301\u1100\u1161A\u030A\u03A9Z\u2019\u1100\u1161\u2014a\u0338"}},
      {u8"\u00E9\uAC00Z\u3099\u00B0\u11ABZ.\u1E0Bu",
       {u8"\u00E9\uAC00Z\u3099\u00B0\u11ABZ.\u1E0Bu", u8"e\u0301\u1100\u1161Z\u3099\u00B0\u11ABZ.d\u0307u",
        u8"\u00E9\uAC00Z\u3099\u00B0\u11ABZ.\u1E0Bu", u8"e\u0301\u1100\u1161Z\u3099\u00B0\u11ABZ.d\u0307u"}},
      {u8".\uFF45\u00FCo\u304B\uFB01\u00FC\u2026\uFF45\u2026",
       {u8".\uFF45\u00FCo\u304B\uFB01\u00FC\u2026\uFF45\u2026",
        u8".\uFF45u\u0308o\u304B\uFB01u\u0308\u2026\uFF45\u2026", u8".e\u00FCo\u304Bfi\u00FC...e...",
        u8".eu\u0308o\u304Bfiu\u0308...e..."}},
      {u8"a\uFF01\uFB01\u11AB\u4E2D\u03A9\u0935\u00E9\u093C\u3099",
       {u8"a\uFF01\uFB01\u11AB\u4E2D\u03A9\u0935\u00E9\u093C\u3099",
        u8"a\uFF01\uFB01\u11AB\u4E2D\u03A9\u0935e\u093C\u3099\u0301",
        u8"a!fi\u11AB\u4E2D\u03A9\u0935\u00E9\u093C\u3099", u8"a!fi\u11AB\u4E2D\u03A9\u0935e\u093C\u3099\u0301"}},
      {u8"\u0323\u3002\uFB01\u0301u\u00F1a\u2026\uFF01 ",
       {u8"\u0323\u3002\uFB01\u0301u\u00F1a\u2026\uFF01 ", u8"\u0323\u3002\uFB01\u0301un\u0303a\u2026\uFF01 ",
        u8"\u0323\u3002f\u00EDu\u00F1a...! ", u8"\u0323\u3002fi\u0301un\u0303a...! "}},
      {u8"\u300Ae.u\u00FC\u0338\u0301\uFF45\u0323\u11AB",
       {u8"\u300Ae.u\u01D8\u0338\uFF45\u0323\u11AB", u8"\u300Ae.uu\u0338\u0308\u0301\uFF45\u0323\u11AB",
        u8"\u300Ae.u\u01D8\u0338\u1EB9\u11AB", u8"\u300Ae.uu\u0338\u0308\u0301e\u0323\u11AB"}},
      {u8"\u3002ea\u0338ee\u0308\u6587\u00B0\u2014",
       {u8"\u3002ea\u0338e\u00EB\u6587\u00B0\u2014", u8"\u3002ea\u0338ee\u0308\u6587\u00B0\u2014",
        u8"\u3002ea\u0338e\u00EB\u6587\u00B0\u2014", u8"\u3002ea\u0338ee\u0308\u6587\u00B0\u2014"}},
      {u8"\u093C\u00FC\u00B0 \u2001\u093C\u2019\u300Ae\uFB01",
       {u8"\u093C\u00FC\u00B0 \u2003\u093C\u2019\u300Ae\uFB01", u8"\u093Cu\u0308\u00B0 \u2003\u093C\u2019\u300Ae\uFB01",
        u8"\u093C\u00FC\u00B0  \u093C\u2019\u300Aefi", u8"\u093Cu\u0308\u00B0  \u093C\u2019\u300Aefi"}},
      {u8"\u6587\u2126\u2026\u00E9\u00FC\u0308\u11ABa\u304B\u0935",
       {u8"\u6587\u03A9\u2026\u00E9\u00FC\u0308\u11ABa\u304B\u0935",
        u8"\u6587\u03A9\u2026e\u0301u\u0308\u0308\u11ABa\u304B\u0935",
        u8"\u6587\u03A9...\u00E9\u00FC\u0308\u11ABa\u304B\u0935",
        u8"\u6587\u03A9...e\u0301u\u0308\u0308\u11ABa\u304B\u0935"}},
  };
  for (const auto& [text, forms] : cases) {
    for (size_t i = 0; i < forms.size(); ++i) {
      const UnicodeForm form{.compose = i % 2 == 0, .compatible = i >= 2};
      EXPECT_EQ(form.apply(plain(text)), plain(forms[i])) << i << ": " << plain(text);
      EXPECT_EQ(form.apply("\xFF" + plain(text) + "\xFF"), "\xFF" + plain(forms[i]) + "\xFF") << i;
    }
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
