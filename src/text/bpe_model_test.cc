#include "text/bpe_model.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "text/text_test_util.h"

namespace ingot {
namespace {

// BPE as it is defined: the lowest rank, of equals the leftmost, until none is left.
std::vector<TokenId> encode_by_definition(std::vector<TokenId> symbols, const std::vector<BpeMerge>& merges) {
  std::map<std::pair<TokenId, TokenId>, size_t> ranks;
  for (size_t rank = 0; rank < merges.size(); ++rank) ranks[{merges[rank].left, merges[rank].right}] = rank;
  for (;;) {
    size_t best = merges.size(), at = 0;
    for (size_t i = 0; i + 1 < symbols.size(); ++i) {
      const auto found = ranks.find({symbols[i], symbols[i + 1]});
      if (found != ranks.end() && found->second < best) best = found->second, at = i;
    }
    if (best == merges.size()) return symbols;
    symbols[at] = merges[best].merged;
    symbols.erase(symbols.begin() + static_cast<ptrdiff_t>(at) + 1);
  }
}

// A model of the letters a to d and random merges of what there is.
struct RandomModel {
  std::vector<std::string> texts{"a", "b", "c", "d"};
  std::vector<BpeMerge> merges;

  explicit RandomModel(std::mt19937& rng) {
    std::map<std::string, TokenId> known;
    for (size_t i = 0; i < texts.size(); ++i) known[texts[i]] = static_cast<TokenId>(i);
    std::map<std::pair<TokenId, TokenId>, bool> used;
    while (merges.size() < 60) {
      const auto left = static_cast<TokenId>(rng() % texts.size()), right = static_cast<TokenId>(rng() % texts.size());
      const std::string text = texts[static_cast<size_t>(left)] + texts[static_cast<size_t>(right)];
      if (text.size() > 12 || used[{left, right}]) continue;
      used[{left, right}] = true;
      if (known.emplace(text, static_cast<TokenId>(texts.size())).second) texts.push_back(text);
      merges.push_back({left, right, known[text]});
    }
  }
  BpeModel model(BpeModel::Options options) const {
    std::vector<std::pair<std::string_view, TokenId>> tokens;
    for (size_t i = 0; i < texts.size(); ++i) tokens.emplace_back(texts[i], static_cast<TokenId>(i));
    std::array<TokenId, 256> no_bytes;
    no_bytes.fill(kNoToken);
    return {tokens, merges, no_bytes, options};
  }
};

std::vector<TokenId> run(const Model& model, std::string_view piece) {
  ModelScratch scratch;
  std::vector<TokenId> ids;
  model.encode(piece, scratch, ids);
  return ids;
}

TEST(BpeModel, EqualsTheDefinitionOnShortAndLongPieces) {
  std::mt19937 rng(11);
  for (int round = 0; round < 40; ++round) {
    const RandomModel random(rng);
    const BpeModel model = random.model({.byte_level = round % 2 == 0});
    for (const size_t size : {1u, 2u, 3u, 10u, 63u, 64u, 65u, 300u}) {
      std::string piece(size, 'a');
      std::vector<TokenId> symbols;
      const uint32_t letters = 1 + rng() % 4;
      for (char& c : piece) {
        symbols.push_back(static_cast<TokenId>(rng() % letters));
        c = static_cast<char>('a' + symbols.back());
      }
      ASSERT_EQ(run(model, piece), encode_by_definition(symbols, random.merges)) << piece;
    }
  }
}

TEST(BpeModel, AMillionEqualBytesTakeNoQuadraticTime) {
  std::vector<BpeMerge> merges{{0, 0, 1}, {1, 1, 2}, {2, 2, 3}};
  std::array<TokenId, 256> no_bytes;
  no_bytes.fill(kNoToken);
  const BpeModel model({{"a", 0}, {"aa", 1}, {"aaaa", 2}, {"aaaaaaaa", 3}}, merges, no_bytes, {.byte_level = true});
  const std::vector<TokenId> ids = run(model, std::string(1'000'003, 'a'));
  std::vector<TokenId> expected(125'000, 3);
  expected.insert(expected.end(), {1, 0});
  EXPECT_EQ(ids, expected);
}

TEST(BpeModel, IgnoreMergesTakesThePieceThatIsAToken) {
  const std::vector<BpeMerge> merges{{0, 1, 3}};
  std::array<TokenId, 256> no_bytes;
  no_bytes.fill(kNoToken);
  const std::vector<std::pair<std::string_view, TokenId>> tokens{{"a", 0}, {"b", 1}, {"c", 2}, {"ab", 3}, {"abc", 4}};
  EXPECT_EQ(run(BpeModel(tokens, merges, no_bytes, {.byte_level = true}), "abc"), (std::vector<TokenId>{3, 2}));
  EXPECT_EQ(run(BpeModel(tokens, merges, no_bytes, {.byte_level = true, .ignore_merges = true}), "abc"),
            (std::vector<TokenId>{4}));
}

TEST(BpeModel, UnknownCharacters) {
  std::array<TokenId, 256> bytes;
  bytes.fill(kNoToken);
  const std::vector<std::pair<std::string_view, TokenId>> tokens{{"a", 0}};
  const auto encode = [&](BpeModel::Options options) {
    return run(BpeModel(tokens, {}, bytes, options),
               "x\xC3\xA9y"
               "a\xFFz");
  };
  EXPECT_EQ(encode({}), (std::vector<TokenId>{0}));
  EXPECT_EQ(encode({.unk = 9}), (std::vector<TokenId>{9, 9, 9, 0, 9, 9}));
  EXPECT_EQ(encode({.fuse_unk = true, .unk = 9}), (std::vector<TokenId>{9, 0, 9}));
  bytes[0xC3] = 20;
  EXPECT_EQ(encode({.byte_fallback = true, .unk = 9}),
            (std::vector<TokenId>{9, 9, 9, 0, 9, 9}));  // all of a character or none
  bytes[0xA9] = 21;
  bytes[0xFF] = 22;
  EXPECT_EQ(encode({.byte_fallback = true, .fuse_unk = true, .unk = 9}),
            (std::vector<TokenId>{9, 20, 21, 9, 0, 22, 9}));
}

TEST(BpeModel, CutsBeforeBlanksOnlyWhereNoTokenReachesAcross) {
  const std::string blank = "\xE2\x96\x81";
  std::array<TokenId, 256> no_bytes;
  no_bytes.fill(kNoToken);
  const std::string word = blank + "a", two = blank + blank, across = "a" + blank;
  const std::string piece = blank + "aa" + two + "a";
  const BpeModel safe({{blank, 0}, {"a", 1}, {word, 2}, {two, 3}}, {}, no_bytes, {});
  EXPECT_EQ(safe.next_cut(piece, 0), 5u);
  EXPECT_EQ(safe.next_cut(piece, 5), piece.size());
  const BpeModel unsafe({{blank, 0}, {"a", 1}, {across, 2}}, {}, no_bytes, {});
  EXPECT_EQ(unsafe.next_cut(piece, 0), piece.size());
}

}  // namespace
}  // namespace ingot
