#include "text/tokenizer.h"

#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "text/stream_decoder.h"
#include "text/text_test_util.h"

namespace ingot {
namespace {

using Ids = std::vector<TokenId>;

const std::vector<std::pair<std::string, std::string>> kMerges = {{" ", "t"}, {"h", "e"},   {" t", "he"},
                                                                  {"l", "l"}, {"he", "ll"}, {"hell", "o"}};
constexpr TokenId kT = 256, kHe = 257, kThe = 258, kLl = 259, kHello = 261, kEnd = 262;

Json added(TokenId id, const std::string& content, const std::string& flag = "") {
  Json token = {{"id", id},        {"content", content},  {"single_word", false}, {"lstrip", false},
                {"rstrip", false}, {"normalized", false}, {"special", false}};
  if (!flag.empty()) token[flag] = true;
  return token;
}

TEST(Tokenizer, EncodesAndDecodesByHand) {
  const Tokenizer tokenizer = test::must_parse(test::byte_level_json(kMerges));
  EXPECT_EQ(tokenizer.vocab_size(), 263);
  EXPECT_EQ(tokenizer.merge_count(), 6);
  EXPECT_EQ(tokenizer.encode("hello the all"), (Ids{kHello, kThe, ' ', 'a', kLl}));
  EXPECT_EQ(tokenizer.encode(""), Ids{});
  EXPECT_EQ(tokenizer.token_text(kThe), "\xC4\xA0the");
  EXPECT_EQ(tokenizer.token_bytes(kThe), " the");
  EXPECT_EQ(tokenizer.token_text(-1), "");
  EXPECT_EQ(tokenizer.token_text(263), "");
  EXPECT_EQ(tokenizer.decode(Ids{kHello, -5, 9999, kT}), "hello t");
  EXPECT_EQ(tokenizer.find_token("he"), kHe);
  EXPECT_EQ(tokenizer.find_token("nothing"), std::nullopt);
}

TEST(Tokenizer, EncodeAppends) {
  const Tokenizer tokenizer = test::must_parse(test::byte_level_json(kMerges));
  Ids ids{7};
  tokenizer.encode("he", ids);
  EXPECT_EQ(ids, (Ids{7, kHe}));
}

TEST(Tokenizer, SpecialTokensAreTextUnlessAskedFor) {
  const Tokenizer tokenizer = test::must_parse(test::byte_level_json(kMerges));
  EXPECT_EQ(tokenizer.eos_id(), kEnd);
  EXPECT_EQ(tokenizer.bos_id(), kEnd);
  EXPECT_TRUE(tokenizer.is_special(kEnd));
  EXPECT_EQ(tokenizer.special_ids(), Ids{kEnd});
  EXPECT_EQ(tokenizer.encode("he<|endoftext|>  he", {.parse_special = true}), (Ids{kHe, kEnd, ' ', ' ', kHe}));
  EXPECT_EQ(tokenizer.encode("<|endoftext|>").size(), 13u);
  EXPECT_EQ(tokenizer.decode(Ids{kHe, kEnd, kHe}), "he<|endoftext|>he");
  EXPECT_EQ(tokenizer.decode(Ids{kHe, kEnd, kHe}, true), "hehe");
}

// Text around special tokens keeps its spacing: what was encoded decodes to the same bytes.
TEST(Tokenizer, TextAroundSpecialTokensSurvives) {
  const Tokenizer tokenizer = test::must_parse(test::byte_level_json(kMerges));
  for (const std::string text : {"<|endoftext|> the", "<|endoftext|>the", "a <|endoftext|>\n\n the <|endoftext|>",
                                 "<|endoftext|><|endoftext|> ", "<|endoftext", "<|endoftext|<|endoftext|>"}) {
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(text, {.parse_special = true})), text);
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(text)), text);
  }
}

TEST(Tokenizer, AnyBytesSurvive) {
  const Tokenizer tokenizer = test::must_parse(test::byte_level_json(kMerges));
  std::mt19937 rng(5);
  for (int i = 0; i < 500; ++i) {
    const std::string bytes = i % 2 == 0 ? test::random_bytes(rng, rng() % 200) : test::random_text(rng, rng() % 60);
    ASSERT_EQ(tokenizer.decode(tokenizer.encode(bytes)), bytes);
    ASSERT_EQ(tokenizer.decode(tokenizer.encode(bytes, {.parse_special = true})), bytes);
  }
}

// The cache and the buffer never show: texts encoded in one call after another, or all at once, or by a fresh
// tokenizer.
TEST(Tokenizer, CachingChangesNothing) {
  const Json json = test::byte_level_json(kMerges);
  const Tokenizer warm = test::must_parse(json);
  std::mt19937 rng(9);
  for (int i = 0; i < 60; ++i) {
    std::string text;
    for (uint32_t k = rng() % 3000; k > 0; --k) text += std::string(rng() % 3 == 0 ? 1 : 0, ' ') + "helot"[rng() % 5];
    ASSERT_EQ(warm.encode(text), test::must_parse(json).encode(text));
  }
}

TEST(Tokenizer, ManyThreadsMayUseOne) {
  const Tokenizer tokenizer = test::must_parse(test::byte_level_json(kMerges));
  std::mt19937 rng(13);
  std::vector<std::string> texts;
  std::vector<Ids> expected;
  for (int i = 0; i < 50; ++i) {
    texts.push_back(test::random_text(rng, 200));
    expected.push_back(tokenizer.encode(texts.back()));
  }
  std::vector<int> wrong(4, 0);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([&, t] {
      for (size_t i = 0; i < 400; ++i)
        wrong[t] += tokenizer.encode(texts[i % texts.size()]) != expected[i % texts.size()];
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4, 0));
}

TEST(Tokenizer, AddedTokenFlags) {
  Json json = test::byte_level_json(kMerges);
  json["added_tokens"].push_back(added(263, "<l>", "lstrip"));
  json["added_tokens"].push_back(added(264, "<r>", "rstrip"));
  json["added_tokens"].push_back(added(265, "zq", "single_word"));
  json["added_tokens"].push_back(added(266, "<l><r>"));
  const Tokenizer tokenizer = test::must_parse(json);
  EXPECT_EQ(tokenizer.encode("a \n<l> a"), (Ids{'a', 263, ' ', 'a'}));
  EXPECT_EQ(tokenizer.encode("a <r> \xE3\x80\x80"
                             "a"),
            (Ids{'a', ' ', 264, 'a'}));
  EXPECT_EQ(tokenizer.encode("zq zqa azq zq-zq"),
            (Ids{265, ' ', 'z', 'q', 'a', ' ', 'a', 'z', 'q', ' ', 265, '-', 265}));
  EXPECT_EQ(tokenizer.encode("<l><r><l>"), (Ids{266, 263}));   // the longest
  EXPECT_EQ(tokenizer.decode(Ids{263, 264}, true), "<l><r>");  // added, but not special
}

TEST(Tokenizer, AddSpecialFollowsTheTemplate) {
  Json json = test::byte_level_json(kMerges);
  json["added_tokens"].push_back(added(263, "<s>", "special"));
  const Json special = {{"SpecialToken", {{"id", "<s>"}, {"type_id", 0}}}},
             end = {{"SpecialToken", {{"id", "end"}, {"type_id", 0}}}};
  const Json text = {{"Sequence", {{"id", "A"}, {"type_id", 0}}}};
  json["post_processor"] = {{"type", "Sequence"},
                            {"processors",
                             {{{"type", "ByteLevel"}, {"trim_offsets", false}},
                              {{"type", "TemplateProcessing"},
                               {"single", {special, text, end}},
                               {"pair", Json::array()},
                               {"special_tokens",
                                {{"<s>", {{"id", "<s>"}, {"ids", {263}}, {"tokens", {"<s>"}}}},
                                 {"end", {{"id", "end"}, {"ids", {kEnd, kEnd}}, {"tokens", {"x", "x"}}}}}}}}}};
  const Tokenizer tokenizer = test::must_parse(json);
  EXPECT_EQ(tokenizer.encode("he"), Ids{kHe});
  EXPECT_EQ(tokenizer.encode("he", {.add_special = true}), (Ids{263, kHe, kEnd, kEnd}));
  EXPECT_EQ(tokenizer.encode("", {.add_special = true}), (Ids{263, kEnd, kEnd}));
  EXPECT_EQ(tokenizer.bos_id(), 263);
}

// As in Llama 2: a blank is put before the text and for each space, characters that are no token become bytes.
Json byte_fallback_json() {
  Json vocab = {{"<unk>", 0}, {"<s>", 1}, {"</s>", 2}};
  for (int b = 0; b < 256; ++b) vocab[fmt::format("<0x{:02X}>", b)] = vocab.size();
  for (const char* token : {"\xE2\x96\x81", "h", "i", "\xE2\x96\x81h", "\xE2\x96\x81hi", "\xE2\x96\x81\xE2\x96\x81"})
    vocab[token] = vocab.size();
  const Json blank = {{"String", "\xE2\x96\x81"}};
  Json specials = Json::array();
  for (const char* token : {"<unk>", "<s>", "</s>"})
    specials.push_back(added(vocab[token].get<TokenId>(), token, "special"));
  return {{"version", "1.0"},
          {"added_tokens", specials},
          {"normalizer",
           {{"type", "Sequence"},
            {"normalizers",
             {{{"type", "Prepend"}, {"prepend", "\xE2\x96\x81"}},
              {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", "\xE2\x96\x81"}}}}}},
          {"pre_tokenizer", nullptr},
          {"post_processor", nullptr},
          {"decoder",
           {{"type", "Sequence"},
            {"decoders",
             {{{"type", "Replace"}, {"pattern", blank}, {"content", " "}},
              {{"type", "ByteFallback"}},
              {{"type", "Fuse"}},
              {{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}}}}}},
          {"model",
           {{"type", "BPE"},
            {"unk_token", "<unk>"},
            {"fuse_unk", true},
            {"byte_fallback", true},
            {"vocab", vocab},
            {"merges", {"\xE2\x96\x81 h", "\xE2\x96\x81h i", "\xE2\x96\x81 \xE2\x96\x81"}}}}};
}

TEST(Tokenizer, ByteFallbackAndBlanks) {
  const Tokenizer tokenizer = test::must_parse(byte_fallback_json());
  const TokenId blank = 259, hi = 263, two = 264;
  EXPECT_EQ(tokenizer.encode("hi hi  h"), (Ids{hi, hi, blank, 262}));
  EXPECT_EQ(tokenizer.encode("  hi"), (Ids{two, hi}));
  EXPECT_EQ(tokenizer.encode("\xC3\xA9"), (Ids{blank, 3 + 0xC3, 3 + 0xA9}));
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("hi hi")), "hi hi");
  EXPECT_EQ(tokenizer.encode("hi</s>", {.parse_special = true}), (Ids{hi, 2}));
  EXPECT_EQ(tokenizer.eos_id(), 2);
  std::mt19937 rng(21);
  for (int i = 0; i < 300; ++i) {
    std::string bytes = test::random_bytes(rng, 1 + rng() % 50) + " hi  " + test::random_text(rng, rng() % 20);
    if (bytes.find("\xE2\x96\x81") != std::string::npos) continue;  // this vocabulary writes a space so
    ASSERT_EQ(tokenizer.decode(tokenizer.encode(bytes)), bytes);
  }
}

// Long texts go through the model in parts; the parts' ids are those of the whole.
TEST(Tokenizer, PartsOfALongTextAreEncodedAsTheWhole) {
  const Json json = byte_fallback_json();
  Json uncut = json;  // a token across a blank that no merge makes forbids the cuts
  uncut["model"]["vocab"]["h\xE2\x96\x81"] = uncut["model"]["vocab"].size();
  const Tokenizer in_parts = test::must_parse(json), whole = test::must_parse(uncut);
  std::mt19937 rng(23);
  for (int i = 0; i < 200; ++i) {
    std::string text;
    for (uint32_t k = 20 + rng() % 200; k > 0; --k) text += std::string_view("hi  \xFF")[rng() % 5];
    ASSERT_EQ(in_parts.encode(text), whole.encode(text)) << text;
  }
}

TEST(Tokenizer, NormalizedAddedTokensAreFoundInNormalizedText) {
  Json json = test::byte_level_json(kMerges);
  json["normalizer"] = {{"type", "NFC"}};
  json["added_tokens"].push_back(added(263, "e\xCC\x81x", "normalized"));
  const Tokenizer tokenizer = test::must_parse(json);
  EXPECT_EQ(tokenizer.encode("\xC3\xA9x"), Ids{263});
  EXPECT_EQ(tokenizer.encode("e\xCC\x81x"), Ids{263});
  EXPECT_EQ(tokenizer.encode("e\xCC\x81"), (Ids{0xC3, 0xA9}));
  EXPECT_EQ(tokenizer.encode("\xFF"
                             "e\xCC\x81\xFE"),
            (Ids{0xFF, 0xC3, 0xA9, 0xFE}));  // bytes that are no UTF-8 stay
}

TEST(Tokenizer, FingerprintTellsBehaviourApart) {
  const Json json = test::byte_level_json(kMerges);
  const uint64_t fingerprint = test::must_parse(json).fingerprint();
  EXPECT_EQ(test::must_parse(json).fingerprint(), fingerprint);
  Json other = json;
  other["pre_tokenizer"]["add_prefix_space"] = true;
  EXPECT_NE(test::must_parse(other).fingerprint(), fingerprint);
  other = json;
  other["added_tokens"][0]["lstrip"] = true;
  EXPECT_NE(test::must_parse(other).fingerprint(), fingerprint);
  other = json;
  std::swap(other["model"]["merges"][0], other["model"]["merges"][1]);
  EXPECT_NE(test::must_parse(other).fingerprint(), fingerprint);
}

TEST(Tokenizer, SavesWhatLoadsBackEqual) {
  Json json = byte_fallback_json();
  const Tokenizer tokenizer = test::must_parse(json);
  const fs::path directory = fs::path(testing::TempDir()) / "ingot_tokenizer_save";
  fs::create_directories(directory);
  ASSERT_TRUE(tokenizer.save(directory / "tokenizer.json").ok());
  const auto again = Tokenizer::load(directory);
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(again->fingerprint(), tokenizer.fingerprint());
  EXPECT_EQ(again->to_file(), tokenizer.to_file());
  // Tokens with spaces cannot be written as "a b".
  json = test::byte_level_json({});
  json["model"]["vocab"] = {{"a ", 0}, {"b", 1}, {"a b", 2}};
  json["model"]["merges"] = Json::array({Json::array({"a ", "b"})});
  json["added_tokens"] = Json::array();
  const Tokenizer spaced = test::must_parse(json);
  EXPECT_EQ(test::must_parse(Json::parse(spaced.to_file())).fingerprint(), spaced.fingerprint());
  fs::remove_all(directory);
}

TEST(Tokenizer, DirectoryNamesBosAndEos) {
  const fs::path directory = fs::path(testing::TempDir()) / "ingot_tokenizer_roles";
  fs::create_directories(directory);
  Json json = test::byte_level_json(kMerges);
  json["added_tokens"].push_back(added(263, "<begin>", "special"));
  ASSERT_TRUE(write_file_atomic(directory / "tokenizer.json", json.dump()).ok());
  const auto roles = [&] {
    const auto tokenizer = Tokenizer::load(directory);
    EXPECT_TRUE(tokenizer.ok()) << tokenizer.error().message;
    return std::make_pair(tokenizer->bos_id(), tokenizer->eos_id());
  };
  EXPECT_EQ(roles(), std::make_pair(std::optional<TokenId>(kEnd), std::optional<TokenId>(kEnd)));
  ASSERT_TRUE(
      write_file_atomic(directory / "generation_config.json", R"({"bos_token_id": 263, "eos_token_id": [257, 258]})")
          .ok());
  EXPECT_EQ(roles(), std::make_pair(std::optional<TokenId>(263), std::optional<TokenId>(257)));
  ASSERT_TRUE(write_file_atomic(directory / "tokenizer_config.json",
                                R"({"bos_token": null, "eos_token": {"content": "<begin>"}})")
                  .ok());
  EXPECT_EQ(roles(), std::make_pair(std::optional<TokenId>(263), std::optional<TokenId>(263)));
  ASSERT_TRUE(write_file_atomic(directory / "tokenizer_config.json", R"({"eos_token": "nowhere"})").ok());
  const auto wrong = Tokenizer::load(directory);
  ASSERT_FALSE(wrong.ok());
  EXPECT_EQ(wrong.error().kind, ErrorKind::input);
  EXPECT_NE(wrong.error().message.find(
                "tokenizer_config.json: eos_token: expected a token of the vocabulary, found \"nowhere\""),
            std::string::npos)
      << wrong.error().message;
  fs::remove_all(directory);
}

std::string stream(const Tokenizer& tokenizer, const Ids& ids, bool whole_characters) {
  StreamDecoder decoder(tokenizer);
  std::string text;
  for (const TokenId id : ids) {
    const std::string part = decoder.push(id);
    EXPECT_TRUE(!whole_characters || valid_utf8_end(part, 0) == part.size());
    text += part;
  }
  return text + decoder.flush();
}

TEST(StreamDecoder, GivesWholeCharactersAndAllBytes) {
  const Tokenizer bytes = test::must_parse(test::byte_level_json(kMerges)),
                  blanks = test::must_parse(byte_fallback_json());
  const std::string text = "hello \xC3\xA9\xE4\xB8\xAD\xF0\x9F\xA6\x99 hi";
  EXPECT_EQ(stream(bytes, bytes.encode(text), true), text);
  EXPECT_EQ(stream(blanks, blanks.encode(text), true), text);
  std::mt19937 rng(31);
  for (int i = 0; i < 200; ++i) {
    Ids ids(rng() % 40);
    for (TokenId& id : ids) id = static_cast<TokenId>(rng() % 262);
    ASSERT_EQ(stream(bytes, ids, false), bytes.decode(ids));
    ASSERT_EQ(stream(blanks, ids, false), blanks.decode(ids));
  }
}

TEST(StreamDecoder, InvalidBytesComeOutOnceNothingCanMendThem) {
  StreamDecoder decoder(test::must_parse(test::byte_level_json(kMerges)), true);
  EXPECT_EQ(decoder.push(0xE2), "");
  EXPECT_EQ(decoder.push(0x82), "");
  EXPECT_EQ(decoder.push('a'),
            "\xE2\x82"
            "a");
  EXPECT_EQ(decoder.push(0xFF), "\xFF");
  EXPECT_EQ(decoder.push(kEnd), "");
  EXPECT_EQ(decoder.push(0xF0), "");
  EXPECT_EQ(decoder.flush(), "\xF0");
  EXPECT_EQ(decoder.push('b'), "b");
}

}  // namespace
}  // namespace ingot
