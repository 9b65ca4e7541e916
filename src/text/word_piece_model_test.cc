#include "text/word_piece_model.h"

#include <gtest/gtest.h>

#include "text/stream_decoder.h"
#include "text/text_test_util.h"

namespace ingot {
namespace {

Json word_piece_json(std::initializer_list<const char*> tokens) {
  Json vocab = Json::object();
  for (const char* token : tokens) vocab[token] = vocab.size();
  Json cls = {{"id", 1}, {"content", "[CLS]"}, {"special", true}, {"normalized", false}};
  return {{"version", "1.0"},
          {"added_tokens", {cls}},
          {"normalizer", {{"type", "BertNormalizer"}, {"lowercase", true}}},
          {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
          {"post_processor", {{"type", "BertProcessing"}, {"sep", {"[SEP]", 2}}, {"cls", {"[CLS]", 1}}}},
          {"decoder", {{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", true}}},
          {"model",
           {{"type", "WordPiece"},
            {"unk_token", "[UNK]"},
            {"continuing_subword_prefix", "##"},
            {"max_input_chars_per_word", 8},
            {"vocab", vocab}}}};
}

const std::initializer_list<const char*> kPieces = {"[UNK]", "[CLS]", "[SEP]", "ba", "##na", "##nas",
                                                    "na",    "!",     "don",   "'",  "t",    "a"};
using Ids = std::vector<TokenId>;

TEST(WordPiece, TakesTheLongestPieceAgainAndAgain) {
  const Tokenizer tokenizer = test::must_parse(word_piece_json(kPieces));
  EXPECT_EQ(tokenizer.encode("banana"), (Ids{3, 4, 4}));
  EXPECT_EQ(tokenizer.encode("bananas!"), (Ids{3, 4, 5, 7}));
  EXPECT_EQ(tokenizer.encode("nab"), (Ids{0}));         // cannot be finished
  EXPECT_EQ(tokenizer.encode("nanananana"), (Ids{0}));  // more than 8 characters
  EXPECT_EQ(tokenizer.encode("B\xC3\xA0na"), (Ids{3, 4}));
  EXPECT_EQ(tokenizer.encode("\xFF na"), (Ids{0, 6}));
  EXPECT_EQ(tokenizer.encode("na", {.add_special = true}), (Ids{1, 6, 2}));
  EXPECT_EQ(tokenizer.encode("[CLS]na", {.parse_special = true}), (Ids{1, 6}));
}

TEST(WordPiece, DecodesWithSpacesBetweenWords) {
  const Tokenizer tokenizer = test::must_parse(word_piece_json(kPieces));
  EXPECT_EQ(tokenizer.decode(Ids{3, 4, 4, 7, 6}), "banana! na");
  EXPECT_EQ(tokenizer.decode(Ids{1, 6, 2}), "[CLS] na [SEP]");
  EXPECT_EQ(tokenizer.decode(Ids{1, 4, 6}, true), "##na na");
  StreamDecoder decoder(tokenizer, true);
  std::string text;
  for (const TokenId id : Ids{1, 3, 4, 8, 9, 10}) text += decoder.push(id);
  EXPECT_EQ(text + decoder.flush(), tokenizer.decode(Ids{1, 3, 4, 8, 9, 10}, true));
}

TEST(WordPiece, SurvivesSaving) {
  const Tokenizer tokenizer = test::must_parse(word_piece_json(kPieces));
  const auto again = Tokenizer::parse(tokenizer.to_file(), "saved");
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(again->fingerprint(), tokenizer.fingerprint());
  EXPECT_EQ(again->to_file(), tokenizer.to_file());
}

TEST(WordPiece, NeedsItsUnknownToken) {
  Json json = word_piece_json({"a", "[CLS]", "[SEP]"});
  const auto tokenizer = Tokenizer::parse(json.dump(), "t.json");
  ASSERT_FALSE(tokenizer.ok());
  EXPECT_EQ(tokenizer.error().message, "t.json: model.unk_token: expected a token of model.vocab, found \"[UNK]\"");
}

}  // namespace
}  // namespace ingot
