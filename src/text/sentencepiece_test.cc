// SentencePiece's .model files, made by hand. tests/golden has files of its own trainer with the ids that it gives.
#include "text/sentencepiece_file.h"

#include <gtest/gtest.h>

#include <bit>

#include "text/text_test_util.h"

namespace ingot {
namespace {

using PieceType = SentencePieceFile::Type;

std::string varint(uint64_t value) {
  std::string out;
  for (; value >= 128; value >>= 7) out += static_cast<char>(value | 128);
  return out + static_cast<char>(value);
}
std::string number_field(int field, uint64_t value) {
  return varint(static_cast<uint64_t>(field) << 3) + varint(value);
}
std::string bytes_field(int field, const std::string& bytes) {
  return varint(static_cast<uint64_t>(field) << 3 | 2) + varint(bytes.size()) + bytes;
}
std::string piece(const std::string& text, float score, PieceType type = PieceType::normal) {
  std::string message = bytes_field(1, text) + varint(2 << 3 | 5);
  const auto bits = std::bit_cast<uint32_t>(score);
  for (int i = 0; i < 4; ++i) message += static_cast<char>(bits >> (8 * i));
  return bytes_field(1, message + number_field(3, static_cast<uint64_t>(type)));
}
const std::string kSpecials =
    piece("<unk>", 0, PieceType::unknown) + piece("<s>", 0, PieceType::control) + piece("</s>", 0, PieceType::control);

std::string settings(int model_type, bool byte_fallback, bool dummy_prefix, bool removes_spaces) {
  return bytes_field(2, number_field(3, static_cast<uint64_t>(model_type)) + number_field(35, byte_fallback)) +
         bytes_field(3, number_field(3, dummy_prefix) + number_field(4, removes_spaces));
}

std::string all_bytes() {
  std::string out;
  for (int byte = 0; byte < 256; ++byte) out += piece(fmt::format("<0x{:02X}>", byte), 0, PieceType::byte);
  return out;
}

const std::string kBlank = "\xE2\x96\x81";

// Llama's way: BPE, bytes, spaces as they are.
std::string bpe_model() {
  return kSpecials + all_bytes() + piece(kBlank, -9) + piece("a", -10) + piece("b", -11) + piece("ab", -1) +
         piece(kBlank + "a", -2) + piece("aa", -3) + piece("aaa", -4) + piece("<t>", 0, PieceType::user_defined) +
         settings(2, true, true, false);
}

Tokenizer loaded(const std::string& bytes) {
  auto tokenizer = Tokenizer::parse(bytes, "m.model");
  INGOT_CHECK(tokenizer.ok(), "{}", tokenizer.ok() ? "" : tokenizer.error().message);
  return *tokenizer;
}

using PieceTexts = std::vector<std::string>;
PieceTexts piece_texts(const Tokenizer& tokenizer, std::string_view text, EncodeOptions options = {}) {
  PieceTexts texts;
  for (const TokenId id : tokenizer.encode(text, options)) texts.push_back(tokenizer.token_text(id));
  return texts;
}

TEST(SentencePiece, BpeMergesByScoreAndOfEqualOnesTheLeftmost) {
  const Tokenizer tokenizer = loaded(bpe_model());
  EXPECT_EQ(piece_texts(tokenizer, "ab"), (PieceTexts{kBlank, "ab"}));
  EXPECT_EQ(piece_texts(tokenizer, "a a"), (PieceTexts{kBlank + "a", kBlank + "a"}));
  EXPECT_EQ(piece_texts(tokenizer, "aaaa"), (PieceTexts{kBlank + "a", "aaa"}));
  EXPECT_EQ(piece_texts(tokenizer, "b<t>b"), (PieceTexts{kBlank, "b", "<t>", "b"}));
  EXPECT_EQ(piece_texts(tokenizer, "\xC3\xA9"), (PieceTexts{kBlank, "<0xC3>", "<0xA9>"}));
  EXPECT_EQ(piece_texts(tokenizer, "a", {.add_special = true}), (PieceTexts{"<s>", kBlank + "a"}));
  EXPECT_EQ(tokenizer.bos_id(), 1);
  EXPECT_EQ(tokenizer.eos_id(), 2);
}

TEST(SentencePiece, TextAfterASpecialTokenKeepsItsSpacing) {
  const Tokenizer tokenizer = loaded(bpe_model());
  EXPECT_EQ(piece_texts(tokenizer, "ab</s>ab </s> b", {.parse_special = true}),
            (PieceTexts{kBlank, "ab", "</s>", "ab", kBlank, "</s>", kBlank, "b"}));
  EXPECT_EQ(piece_texts(tokenizer, "</s>").size(), 5u);  // plain text unless asked for
  std::mt19937 rng(4);
  for (int i = 0; i < 200; ++i) {
    const std::string text = i % 2 == 0 ? test::random_bytes(rng, 60) : test::random_text(rng, 40);
    ASSERT_EQ(tokenizer.decode(tokenizer.encode(text)), text);
    ASSERT_EQ(tokenizer.decode(tokenizer.encode("<s>" + text, {.parse_special = true})), "<s>" + text);
  }
}

TEST(SentencePiece, UnigramNormalizesSpaces) {
  const Tokenizer tokenizer = loaded(kSpecials + piece(kBlank, -3) + piece("a", -3) + piece(kBlank + "a", -1) +
                                     piece("b", -3) + piece("bb", 0, PieceType::user_defined) + piece("ab", -2) +
                                     piece("never", 0, PieceType::unused) + settings(1, false, true, true));
  EXPECT_EQ(piece_texts(tokenizer, "  a   b "), (PieceTexts{kBlank + "a", kBlank, "b"}));
  EXPECT_EQ(piece_texts(tokenizer, "abb"), (PieceTexts{kBlank + "a", "bb"}));  // user-defined ones always win
  EXPECT_EQ(piece_texts(tokenizer, "xyab"), (PieceTexts{kBlank, "<unk>", "ab"}));
  EXPECT_EQ(piece_texts(tokenizer, "   "), PieceTexts{});
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("a  b")), "a b");
}

TEST(SentencePiece, IsWrittenAgainAsItCame) {
  const Tokenizer tokenizer = loaded(bpe_model());
  EXPECT_EQ(tokenizer.to_file(), bpe_model());
  EXPECT_EQ(tokenizer.file_name(), "tokenizer.model");
  EXPECT_EQ(loaded(tokenizer.to_file()).fingerprint(), tokenizer.fingerprint());
}

TEST(SentencePiece, ADirectorysConfigurationSaysWhatIsAdded) {
  const fs::path directory = fs::path(testing::TempDir()) / "ingot_sentencepiece";
  fs::create_directories(directory);
  ASSERT_TRUE(write_file_atomic(directory / "tokenizer.model", bpe_model()).ok());
  const auto with = [&](const Json& config) {
    EXPECT_TRUE(write_file_atomic(directory / "tokenizer_config.json", config.dump()).ok());
    return piece_texts(*Tokenizer::load(directory), "b", {.add_special = true});
  };
  EXPECT_EQ(with(Json::object()), (PieceTexts{"<s>", kBlank, "b"}));
  EXPECT_EQ(with({{"add_bos_token", false}, {"add_eos_token", true}}), (PieceTexts{kBlank, "b", "</s>"}));
  fs::remove_all(directory);
}

TEST(SentencePiece, WhatIsNotSupportedIsRefusedByName) {
  const auto error_of = [](const std::string& bytes) {
    const auto tokenizer = Tokenizer::parse(bytes, "m.model");
    if (tokenizer.ok()) return std::string("no error");
    EXPECT_EQ(tokenizer.error().kind, ErrorKind::input);
    return tokenizer.error().message;
  };
  EXPECT_EQ(error_of(kSpecials + settings(3, false, true, true)),
            "m.model: trainer_spec.model_type 3 (known: 1, Unigram; 2, BPE) is not supported");
  EXPECT_EQ(error_of(kSpecials + bytes_field(2, number_field(24, 1))),
            "m.model: trainer_spec.treat_whitespace_as_suffix is not supported");
  EXPECT_EQ(error_of(kSpecials + bytes_field(3, number_field(5, 0))),
            "m.model: normalizer_spec.escape_whitespaces: false is not supported");
  EXPECT_EQ(error_of(kSpecials + piece("a", 0) + piece("a", 0)), "m.model: pieces[4]: the piece 'a' stands twice");
  EXPECT_EQ(error_of(piece("a", 0)), "m.model: no SentencePiece model: it has no unknown piece");
  EXPECT_EQ(error_of(kSpecials + piece("x", 0, PieceType::byte)), "m.model: pieces[3]: 'x' is no byte piece (<0x41>)");
  EXPECT_EQ(error_of(kSpecials + piece("xy", 0) + piece("x", 0) + settings(2, false, true, true)),
            "m.model: pieces[3]: 'xy' has the character 'y', which is no piece itself; not supported");
  EXPECT_EQ(error_of(kSpecials + bytes_field(3, bytes_field(2, "abc")))
                .find("m.model: normalizer_spec.precompiled_charsmap: expected at least 4 bytes"),
            0u);
}

TEST(SentencePiece, DamagedFilesAreRefusedOrLoadWhole) {
  const std::string whole = bpe_model();
  for (size_t size = 1; size < whole.size(); ++size) {
    const auto tokenizer = Tokenizer::parse(whole.substr(0, size), "m.model");
    EXPECT_TRUE(tokenizer.ok() || tokenizer.error().kind == ErrorKind::input) << size;
  }
  std::mt19937 rng(8);
  for (int i = 0; i < 3000; ++i) {
    std::string damaged = whole;
    for (uint32_t k = 1 + rng() % 3; k > 0; --k)
      damaged[1 + rng() % (damaged.size() - 1)] ^= static_cast<char>(1 << rng() % 8);
    const auto tokenizer = Tokenizer::parse(damaged, "m.model");
    if (tokenizer.ok()) (void)tokenizer->decode(tokenizer->encode("aab <t> \xC3\xA9", {.parse_special = true}));
  }
}

}  // namespace
}  // namespace ingot
