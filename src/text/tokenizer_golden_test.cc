// Ids that others' tokenizers gave.
#include <gtest/gtest.h>

#include <sstream>

#include "text/text_test_util.h"

namespace ingot {
namespace {

void expect_golden(const std::string& folder) {
  const fs::path path = test::shared_data(folder);
  if (path.empty()) return;
  const auto tokenizer = Tokenizer::load(path);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  const auto golden = read_file(path / "golden.json");
  ASSERT_TRUE(golden.ok());
  const Json cases = Json::parse(*golden);
  ASSERT_GE(cases.size(), 40u);
  for (const Json& example : cases) {
    const auto text = example["text"].get<std::string>();
    const auto ids = tokenizer->encode(text);
    EXPECT_EQ(ids, example["ids"].get<std::vector<TokenId>>()) << text;
    EXPECT_EQ(tokenizer->decode(ids), text);
  }
}

TEST(Golden, Gpt2) {
  expect_golden("tokenizers/gpt2");
}
TEST(Golden, Llama3) {
  expect_golden("tokenizers/llama3");
}

TEST(Golden, Llama2) {
  expect_golden("tokenizers/llama2");
}

TEST(Golden, Llama2ReadsItsEndOfTextAsAToken) {
  const fs::path path = test::shared_data("tokenizers/llama2");
  if (path.empty()) return;
  const auto tokenizer = Tokenizer::load(path);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  const EncodeOptions specials{.parse_special = true, .add_special = true};
  EXPECT_EQ(tokenizer->encode("I love you.</s>", specials), (std::vector<TokenId>{1, 306, 5360, 366, 29889, 2}));
  EXPECT_EQ(tokenizer->encode("This is \xF0\x9F\xA6\x99.cpp", specials),
            (std::vector<TokenId>{1, 910, 338, 29871, 243, 162, 169, 156, 29889, 8223}));
}

// Small files and what the native Hugging Face tokenizer and SentencePiece's tools make of them
// (tests/golden/make_tokenizers.sh).
TEST(Golden, SmallTokenizersOfEachKind) {
  const fs::path directory = fs::path(INGOT_SOURCE_DIR) / "tests/golden/tokenizers";
  const auto golden = read_file(directory / "golden.json");
  ASSERT_TRUE(golden.ok()) << golden.error().message;
  const Json files = Json::parse(*golden);
  ASSERT_EQ(files.size(), 4u);
  for (const auto& [name, cases] : files.items()) {
    const auto tokenizer = Tokenizer::load(directory / name);
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message;
    ASSERT_GE(cases.size(), 15u);
    for (const Json& example : cases) {
      const auto text = example["text"].get<std::string>();
      const auto ids = example["ids"].get<std::vector<TokenId>>();
      EXPECT_EQ(tokenizer->encode(text, {.parse_special = !name.ends_with(".model")}), ids) << name << ": " << text;
      EXPECT_EQ(tokenizer->decode(ids), example["decoded"].get<std::string>()) << name << ": " << text;
    }
  }
}

// What is stored for one tokenizer against what it makes of the texts; null where SentencePiece's tools, which read
// lines, cannot be asked. Gives the number of texts compared.
size_t expect_stored(const std::string& name, const fs::path& path, const std::vector<std::string>& texts,
                     const Json& results) {
  const auto tokenizer = Tokenizer::load(path);
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  EXPECT_EQ(results.size(), texts.size()) << name;
  if (!tokenizer.ok() || results.size() != texts.size()) return 0;
  const bool is_sentencepiece =
      fs::is_directory(path) ? fs::exists(path / "tokenizer.model") : path.extension() == ".model";
  size_t compared = 0;
  for (size_t i = 0; i < texts.size(); ++i) {
    if (results[i].is_null()) continue;
    const auto ids = results[i]["ids"].get<std::vector<TokenId>>();
    EXPECT_EQ(tokenizer->encode(texts[i], {.parse_special = !is_sentencepiece}), ids) << name << ": " << texts[i];
    EXPECT_EQ(tokenizer->decode(ids), results[i].value("decoded", texts[i])) << name << ": " << texts[i];
    ++compared;
  }
  return compared;
}

// English, Chinese, code, random assigned code points and what is out of the ordinary, as the native Hugging Face
// tokenizer and SentencePiece's tools read them (tests/golden/make_tokenizers.sh).
TEST(Golden, TextsOfManyKindsHaveTheIdsThatOthersGive) {
  const fs::path directory = fs::path(INGOT_SOURCE_DIR) / "tests/golden/tokenizers";
  const auto lines = read_file(directory / "texts.jsonl"), stored = read_file(directory / "results.json");
  ASSERT_TRUE(lines.ok() && stored.ok());
  std::vector<std::string> texts;
  std::istringstream stream(*lines);
  for (std::string line; std::getline(stream, line);) texts.push_back(Json::parse(line).get<std::string>());
  const Json results = Json::parse(*stored);
  ASSERT_EQ(results.size(), 7u);
  for (const auto& [name, expected] : results.items()) {
    const bool is_shared = name.starts_with("shared ");
    const fs::path path = is_shared ? test::shared_data("tokenizers/" + name.substr(7)) : directory / name;
    if (path.empty()) continue;
    EXPECT_GE(expect_stored(name, path, texts, expected), 150u) << name;
  }
}

TEST(Golden, Gpt2EndOfTextIsPlainTextUnlessAskedFor) {
  const fs::path path = test::shared_data("tokenizers/gpt2");
  if (path.empty()) return;
  const auto tokenizer = Tokenizer::load(path);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  EXPECT_EQ(tokenizer->encode("<|endoftext|>"), (std::vector<TokenId>{27, 91, 437, 1659, 5239, 91, 29}));
  EXPECT_EQ(tokenizer->encode("<|endoftext|>", {.parse_special = true}), (std::vector<TokenId>{50256}));
  EXPECT_EQ(tokenizer->decode(std::vector<TokenId>{50256}), "<|endoftext|>");
  EXPECT_EQ(tokenizer->decode(std::vector<TokenId>{50256}, true), "");
  EXPECT_EQ(tokenizer->vocab_size(), 50257);
  EXPECT_EQ(tokenizer->eos_id(), 50256);
  const std::string spaced = "a <|endoftext|>  b\n";
  EXPECT_EQ(tokenizer->decode(tokenizer->encode(spaced, {.parse_special = true})), spaced);
}

TEST(Golden, Stories260kDecodesItsContinuation) {
  const fs::path path = test::shared_data("stories260k");
  if (path.empty()) return;
  const auto tokenizer = Tokenizer::load(path);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  const auto file = read_file(path / "golden.json");
  ASSERT_TRUE(file.ok());
  const Json golden = Json::parse(*file);
  const auto ids = golden["greedy_ids"].get<std::vector<TokenId>>();
  const auto text = golden["greedy_text"].get<std::string>();
  EXPECT_EQ(tokenizer->decode(ids, true), text);
  EXPECT_EQ(tokenizer->encode(text, {.add_special = true}), ids);
  EXPECT_EQ(tokenizer->bos_id(), 1);
  EXPECT_EQ(tokenizer->eos_id(), 2);
  EXPECT_EQ(tokenizer->encode("</s>", {.parse_special = true}), std::vector<TokenId>{2});
  const std::string odd = "caf\xC3\xA9 \xF0\x9F\xA6\x99 \xFF  two";
  EXPECT_EQ(tokenizer->decode(tokenizer->encode(odd)), odd);
}

TEST(Golden, SharedTokenizersSurviveSaving) {
  for (const char* name : {"tokenizers/gpt2", "tokenizers/llama3", "stories260k"}) {
    const fs::path path = test::shared_data(name);
    if (path.empty()) continue;
    const auto tokenizer = Tokenizer::load(path / "tokenizer.json");
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message;
    const std::string json = tokenizer->to_file();
    const auto again = Tokenizer::parse(json, "saved");
    ASSERT_TRUE(again.ok()) << again.error().message;
    EXPECT_EQ(again->fingerprint(), tokenizer->fingerprint());
    EXPECT_EQ(again->to_file(), json);
    const std::string text = "Hello, world! It's 2024 \xF0\x9F\xA6\x99";
    EXPECT_EQ(again->encode(text), tokenizer->encode(text));
  }
}

}  // namespace
}  // namespace ingot
