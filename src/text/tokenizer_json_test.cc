// What is wrong with a tokenizer.json is said, with the file and the key.
#include <gtest/gtest.h>

#include <functional>

#include "text/text_test_util.h"

namespace ingot {
namespace {

std::string error_of(std::string_view text) {
  const auto tokenizer = Tokenizer::parse(text, "t.json");
  if (tokenizer.ok()) return "no error";
  EXPECT_EQ(tokenizer.error().kind, ErrorKind::input);
  return tokenizer.error().message;
}

std::string error_after(const std::function<void(Json&)>& change) {
  Json json = test::byte_level_json({{"a", "b"}});
  change(json);
  return error_of(json.dump());
}

TEST(TokenizerJson, MalformedText) {
  EXPECT_EQ(error_of("").rfind("t.json: not valid JSON at byte", 0), 0u) << error_of("");
  EXPECT_NE(error_of("{\"model\": {").find("not valid JSON"), std::string::npos);
  EXPECT_NE(error_of("{\"model\": \"\xFF\"}").find("not valid JSON"), std::string::npos);
  EXPECT_NE(error_of("{\"version\": 1e999}").find("not valid JSON"), std::string::npos);
  EXPECT_EQ(error_of("[1]"), "t.json: top level: expected an object, found an array of 1");
  EXPECT_EQ(error_of("7"), "t.json: top level: expected an object, found 7");
  EXPECT_EQ(error_of("{}"), "t.json: model: expected an object, found nothing");
  EXPECT_EQ(error_of(R"({"version": "1.0", "version": "1.0"})"),
            "t.json: the key 'version' stands twice in one object");
}

TEST(TokenizerJson, DeepNestingIsRefused) {
  EXPECT_EQ(error_of(std::string(100000, '[')), "t.json: nested deeper than 64 levels");
  std::string deep = R"({"normalizer": )";
  for (int i = 0; i < 20; ++i) deep += R"({"type": "Sequence", "normalizers": [)";
  deep += R"({"type": "NFC"})";
  for (int i = 0; i < 20; ++i) deep += "]}";
  deep += R"(, "model": {}, "decoder": {"type": "ByteLevel"}})";
  EXPECT_NE(error_of(deep).find("a Sequence nested this deep is not supported"), std::string::npos) << error_of(deep);
}

TEST(TokenizerJson, WhatIsNotSupportedIsRefusedByName) {
  EXPECT_EQ(error_after([](Json& json) {
              json["padding"] = {{"strategy", "BatchLongest"}};
            }),
            "t.json: padding: cutting or padding texts (set it to null) is not supported");
  EXPECT_EQ(error_after([](Json& json) { json["model"]["type"] = "WordLevel"; }),
            "t.json: model.type: the model \"WordLevel\" (known: BPE, Unigram, WordPiece) is not supported");
  EXPECT_EQ(error_after([](Json& json) { json["model"]["dropout"] = 0.1; }),
            "t.json: model.dropout: BPE dropout is not supported");
  EXPECT_EQ(error_after([](Json& json) { json["model"]["end_of_word_suffix"] = "</w>"; }),
            "t.json: model.end_of_word_suffix: a prefix or suffix of tokens is not supported");
  EXPECT_NE(error_after([](Json& json) {
              json["normalizer"] = {{"type", "Uppercase"}};
            }).find("the normalizer \"Uppercase\""),
            std::string::npos);
  EXPECT_NE(error_after([](Json& json) {
              json["decoder"] = {{"type", "CTC"}};
            }).find("the decoder \"CTC\""),
            std::string::npos);
  EXPECT_NE(error_after([](Json& json) { json["decoder"] = nullptr; }).find("t.json: decoder: no decoder (null)"),
            std::string::npos);
  EXPECT_NE(error_after([](Json& json) {
              json["post_processor"] = {{"type", "Padding"}};
            }).find("the post-processor \"Padding\""),
            std::string::npos);
  EXPECT_NE(error_after([](Json& json) { json["surprise"] = 1; }).find("the key 'surprise' is not supported"),
            std::string::npos);
  EXPECT_NE(
      error_after([](Json& json) { json["pre_tokenizer"]["surprise"] = 1; }).find("pre_tokenizer: the key 'surprise'"),
      std::string::npos);
  EXPECT_EQ(error_after([](Json& json) { json["version"] = "2.0"; }),
            "t.json: version: expected \"1.0\", found \"2.0\"");
}

TEST(TokenizerJson, VocabularyAndIds) {
  EXPECT_EQ(error_after([](Json& json) { json["model"]["vocab"]["c2"] = 5; }),
            "t.json: model.vocab: the id 5 belongs to both \"\\u0105\" and \"c2\"");
  EXPECT_EQ(error_of(R"({"model": {"vocab": {"a": 0, "a": 1}, "merges": []}, "decoder": {"type": "ByteLevel"}})"),
            "t.json: model.vocab: the token \"a\" stands twice");
  EXPECT_EQ(error_after([](Json& json) { json["model"]["vocab"]["c2"] = -1; }),
            "t.json: model.vocab[\"c2\"]: expected an id from 0 to 4194303, found -1");
  EXPECT_EQ(error_after([](Json& json) { json["model"]["vocab"]["c2"] = 99999999999; }),
            "t.json: model.vocab[\"c2\"]: expected an id from 0 to 4194303, found 99999999999");
  EXPECT_EQ(error_after([](Json& json) { json["model"]["vocab"]["c2"] = "x"; }),
            "t.json: model.vocab[\"c2\"]: expected an id, found \"x\"");
  EXPECT_EQ(error_after([](Json& json) { json["model"]["vocab"]["c2"] = 1.5; }),
            "t.json: model.vocab[\"c2\"]: expected an id, found 1.5");
  EXPECT_EQ(error_after([](Json& json) { json["model"]["vocab"] = Json::array(); }),
            "t.json: model.vocab: expected an object, found an array of 0");
  EXPECT_EQ(error_after([](Json& json) { json["added_tokens"][0].erase("id"); }),
            "t.json: added_tokens[0].id: expected an integer from 0 to 4194303, found nothing");
  EXPECT_EQ(error_after([](Json& json) { json["added_tokens"][0]["content"] = "ab"; }),
            "t.json: added_tokens[0]: the token \"ab\" has id 257 here and 256 elsewhere");
  EXPECT_EQ(error_after([](Json& json) { json["added_tokens"][0]["id"] = 256; }),
            "t.json: added_tokens[0]: the id 256 belongs to both \"ab\" and \"<|endoftext|>\"");
  EXPECT_EQ(error_after([](Json& json) { json["added_tokens"].push_back(json["added_tokens"][0]); }),
            "t.json: added_tokens[1]: the token \"<|endoftext|>\" stands twice");
  EXPECT_EQ(error_after([](Json& json) { json["added_tokens"][0]["special"] = "yes"; }),
            "t.json: added_tokens[0].special: expected true or false, found \"yes\"");
  EXPECT_EQ(error_after([](Json& json) { json["model"]["unk_token"] = "nowhere"; }),
            "t.json: model.unk_token: expected a token of model.vocab, found \"nowhere\"");
}

TEST(TokenizerJson, Merges) {
  EXPECT_EQ(error_after([](Json& json) { json["model"]["merges"].push_back("b a"); }),
            "t.json: model.merges[1]: \"b\" and \"a\" need the token \"ba\", which model.vocab lacks");
  EXPECT_EQ(error_after([](Json& json) { json["model"]["merges"].push_back("x1 a"); }),
            "t.json: model.merges[1]: \"x1\" and \"a\" need the token \"x1\", which model.vocab lacks");
  EXPECT_EQ(error_after([](Json& json) {
              json["model"]["merges"].push_back({"a", "b"});
            }),
            "t.json: model.merges[1]: \"a\" and \"b\" stand twice");
  EXPECT_EQ(error_after([](Json& json) { json["model"]["merges"].push_back("a b c"); }),
            "t.json: model.merges[1]: expected two tokens with one space between them, found \"a b c\"");
  EXPECT_EQ(error_after([](Json& json) {
              json["model"]["merges"].push_back({"a", "b", "c"});
            }),
            "t.json: model.merges[1]: expected two strings, found 3");
  EXPECT_EQ(error_after([](Json& json) { json["model"]["merges"].push_back(4); }),
            "t.json: model.merges[1]: expected \"a b\" or [\"a\", \"b\"], found 4");
  EXPECT_EQ(error_after([](Json& json) { json["model"]["merges"] = 3; }),
            "t.json: model.merges: expected an array, found 3");
}

TEST(TokenizerJson, Stages) {
  EXPECT_NE(error_after([](Json& json) {
              json["pre_tokenizer"] = {{"type", "Split"}, {"pattern", {{"Regex", "("}}}, {"behavior", "Isolated"}};
            }).find("t.json: pre_tokenizer.pattern: the regex '(' does not compile"),
            std::string::npos);
  EXPECT_EQ(error_after([](Json& json) {
              json["pre_tokenizer"] = {{"kind", "Split"}};
            }),
            "t.json: pre_tokenizer.type: expected a string, found nothing");
  EXPECT_EQ(error_after([](Json& json) {
              json["post_processor"] = {{"type", "TemplateProcessing"},
                                        {"single", {{{"SpecialToken", {{"id", "x"}}}}, {{"Sequence", {{"id", "A"}}}}}},
                                        {"special_tokens", {{"x", {{"id", "x"}, {"ids", {4000}}, {"tokens", {"x"}}}}}}};
            }),
            "t.json: post_processor.special_tokens.x.ids[0]: expected the id of a token, found 4000");
  EXPECT_EQ(error_after([](Json& json) {
              json["post_processor"] = {{"type", "TemplateProcessing"}, {"single", Json::array()}};
            }),
            "t.json: post_processor.single: a template for one text must hold the sequence A once");
  EXPECT_EQ(error_after([](Json& json) {
              json["normalizer"] = {{"type", "Replace"}, {"pattern", {{"String", ""}}}, {"content", "x"}};
            }),
            "t.json: normalizer.pattern.String: expected a string that is not empty, found \"\"");
}

TEST(TokenizerJson, FilesThatAreNotThere) {
  const auto missing = Tokenizer::load("/nowhere/tokenizer.json");
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().kind, ErrorKind::input);
  EXPECT_NE(missing.error().message.find("/nowhere/tokenizer.json"), std::string::npos);
  const fs::path empty = fs::path(testing::TempDir()) / "ingot_no_tokenizer";
  fs::create_directories(empty);
  const auto nothing = Tokenizer::load(empty);
  ASSERT_FALSE(nothing.ok());
  EXPECT_NE(nothing.error().message.find("no tokenizer.json in this directory"), std::string::npos);
  fs::remove_all(empty);
}

TEST(TokenizerJson, OlderAndNewerFormsMeanTheSame) {
  Json json = test::byte_level_json({{"a", "b"}});
  const uint64_t fingerprint = test::must_parse(json).fingerprint();
  Json other = json;
  other["model"]["merges"] = Json::array({Json::array({"a", "b"})});
  EXPECT_EQ(test::must_parse(other).fingerprint(), fingerprint);
  other = json;
  other["model"].erase("type");
  other.erase("version");
  other["model"]["unk_token"] = "";
  other["model"]["end_of_word_suffix"] = "";
  EXPECT_EQ(test::must_parse(other).fingerprint(), fingerprint);
}

}  // namespace
}  // namespace ingot
