#include "text/unigram_model.h"

#include <gtest/gtest.h>

#include <map>

#include "text/text_test_util.h"
#include "text/tokenizer_json.h"

namespace ingot {
namespace {

using Scored = std::vector<std::pair<std::string, double>>;

Json unigram_json(const Scored& vocabulary, bool byte_fallback = false) {
  Json vocab = Json::array();
  for (const auto& [text, score] : vocabulary) vocab.push_back(Json::array({text, score}));
  return {{"version", "1.0"},
          {"decoder", {{"type", "Fuse"}}},
          {"model", {{"type", "Unigram"}, {"unk_id", 0}, {"vocab", vocab}, {"byte_fallback", byte_fallback}}}};
}

std::vector<std::string> tokens_of(const Tokenizer& tokenizer, std::string_view text) {
  std::vector<std::string> tokens;
  for (const TokenId id : tokenizer.encode(text)) tokens.push_back(tokenizer.token_text(id));
  return tokens;
}

using UnigramTokens = std::vector<std::string>;

TEST(Unigram, TakesTheBestSumAndFusesUnknowns) {
  const Tokenizer tokenizer = test::must_parse(unigram_json({{"<unk>", 0.0},
                                                             {"a", 0.0},
                                                             {"b", 0.0},
                                                             {"c", 0.0},
                                                             {"d", 0.0},
                                                             {"cd", 1.0},
                                                             {"ab", 2.0},
                                                             {"abc", 5.0},
                                                             {"abcd", 10.0}}));
  EXPECT_EQ(tokens_of(tokenizer, "abcdacdxx"), (UnigramTokens{"abcd", "a", "cd", "<unk>"}));
  EXPECT_EQ(tokens_of(tokenizer, "abcxyab"), (UnigramTokens{"abc", "<unk>", "ab"}));
  EXPECT_EQ(tokens_of(tokenizer,
                      "\xFF"
                      "a\xC3\xA9\xC3"),
            (UnigramTokens{"<unk>", "a", "<unk>"}));
  EXPECT_EQ(tokenizer.encode(""), std::vector<TokenId>{});
}

TEST(Unigram, OfEqualSumsTheFirstFoundCounts) {
  const Tokenizer tokenizer = test::must_parse(unigram_json({{"<unk>", 0.0}, {"aa", -1.0}, {"a", -2.0}}));
  EXPECT_EQ(tokens_of(tokenizer, "aaa"), (UnigramTokens{"a", "aa"}));
}

TEST(Unigram, UnknownsBecomeBytesWhereThereAreAllOfThem) {
  Scored vocabulary{{"<unk>", 0.0}, {"a", -1.0}};
  for (int byte = 0; byte < 256; ++byte) vocabulary.emplace_back(fmt::format("<0x{:02X}>", byte), 0.0);
  Json json = unigram_json(vocabulary, true);
  json["decoder"] = {{"type", "Sequence"}, {"decoders", {{{"type", "ByteFallback"}}, {{"type", "Fuse"}}}}};
  const Tokenizer tokenizer = test::must_parse(json);
  EXPECT_EQ(tokens_of(tokenizer, "a\xC3\xA9"), (UnigramTokens{"a", "<0xC3>", "<0xA9>"}));
  std::mt19937 rng(3);
  for (int i = 0; i < 100; ++i) {
    const std::string text = i % 2 == 0 ? test::random_bytes(rng, 100) : test::random_text(rng, 50);
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(text)), text);
  }
}

// All ways to cut a text, by brute force.
double best_score(std::string_view text, const std::map<std::string, double, std::less<>>& scores, double unknown) {
  std::vector<double> best(text.size() + 1, -1e300);
  best[0] = 0;
  for (size_t begin = 0; begin < text.size(); ++begin) {
    bool single = false;
    for (size_t size = 1; begin + size <= text.size(); ++size) {
      const auto found = scores.find(text.substr(begin, size));
      if (found == scores.end()) continue;
      single = single || size == 1;
      best[begin + size] = std::max(best[begin + size], best[begin] + found->second);
    }
    if (!single) best[begin + 1] = std::max(best[begin + 1], best[begin] + unknown);
  }
  return best.back();
}

TEST(Unigram, FindsTheBestOfAllWays) {
  std::mt19937 rng(17);
  Scored vocabulary{{"<unk>", 0.0}};
  std::map<std::string, double, std::less<>> scores;
  while (scores.size() < 40) {
    std::string text;
    for (uint32_t k = 1 + rng() % 4; k > 0; --k) text += "abcd"[rng() % 4];
    if (text == "d") continue;  // unknown by itself
    if (scores.emplace(text, -static_cast<double>(rng() % 1000) / 64).second)
      vocabulary.emplace_back(text, scores[text]);
  }
  double lowest = 0;
  for (const auto& [text, score] : scores) lowest = std::min(lowest, score);
  const Tokenizer tokenizer = test::must_parse(unigram_json(vocabulary));
  for (int i = 0; i < 300; ++i) {
    std::string text;
    for (uint32_t k = rng() % 12; k > 0; --k) text += "abcd"[rng() % 4];
    double sum = 0;
    bool has_unknown = false;
    for (const TokenId id : tokenizer.encode(text)) {
      has_unknown = has_unknown || id == 0;
      sum += vocabulary[static_cast<size_t>(id)].second;
    }
    if (has_unknown) continue;
    EXPECT_EQ(sum, best_score(text, scores, lowest - 10)) << text;
  }
}

TEST(Unigram, SurvivesSaving) {
  const Tokenizer tokenizer = test::must_parse(unigram_json({{"<unk>", 0.0}, {"a", -0.1}, {"ab", -1.0 / 3}}));
  const auto again = Tokenizer::parse(tokenizer.to_file(), "saved");
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(again->fingerprint(), tokenizer.fingerprint());
  EXPECT_EQ(again->to_file(), tokenizer.to_file());
}

// The library's reading of a number is not the nearest double; for short ones it is.
TEST(Unigram, ScoresAreReadAsTheLibraryDoes) {
  for (const char* number : {"0", "-3", "0.5", "-1.25e2", "-11.5129", "1e-5", "12E+2", "0.000001"})
    EXPECT_EQ(read_score(number), std::strtod(number, nullptr)) << number;
  EXPECT_EQ(read_score("-8.123456789012345678901234567890"), -(static_cast<double>(8123456789012345678) / 1e18));
  EXPECT_EQ(read_score("-7.0123456789012345"), -(static_cast<double>(70123456789012345) / 1e16));
  EXPECT_EQ(read_score("1e-400"), 0.0);
}

TEST(Unigram, WhatIsWrongWithTheFileIsSaid) {
  const auto error_of = [](const Json& json) {
    const auto tokenizer = Tokenizer::parse(json.dump(), "t.json");
    return tokenizer.ok() ? "no error" : tokenizer.error().message;
  };
  Json json = unigram_json({{"<unk>", 0.0}, {"a", 0.0}});
  json["model"]["unk_id"] = 2;
  EXPECT_EQ(error_of(json), "t.json: model.unk_id: expected an integer from 0 to 1, found 2");
  for (const Json& entry : {Json("a"), Json::array({"a"}), Json::array({"a", "b"}), Json::array({1, "a"}),
                            Json::array({"a", 1, 2}), Json::array({"a", Json::array()}), Json(7), Json::object()}) {
    json = unigram_json({{"<unk>", 0.0}});
    json["model"]["vocab"].push_back(entry);
    EXPECT_EQ(error_of(json), "t.json: model.vocab[1]: expected a token and its score") << entry;
  }
  json = unigram_json({{"a", 0.0}, {"a", 0.0}});
  EXPECT_EQ(error_of(json), "t.json: model.vocab: the token \"a\" stands twice");
  json = unigram_json({{"a", 0.0}});
  json["model"]["vocab"] = {{"a", 0}};
  EXPECT_EQ(error_of(json), "t.json: model.vocab: expected an array of tokens and scores, found an object");
  json = unigram_json({{"a", 0.0}});
  json["pre_tokenizer"] = {{"type", "ByteLevel"}};
  EXPECT_EQ(error_of(json), "t.json: pre_tokenizer: ByteLevel before the model Unigram is not supported");
}

}  // namespace
}  // namespace ingot
