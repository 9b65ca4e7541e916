#include <gtest/gtest.h>

#include <map>
#include <random>

#include "base/log.h"
#include "base/parallel.h"
#include "text/gpt_scanner.h"
#include "text/piece_counts.h"
#include "text/text_test_util.h"
#include "text/tokenizer_parts.h"

namespace ingot {
namespace {

Result<Tokenizer> train(const std::vector<std::string>& documents, int64_t vocab_size, int threads = 1) {
  const std::vector<std::string_view> views(documents.begin(), documents.end());
  BpeTrainOptions options;
  options.vocab_size = vocab_size;
  return train_bpe(views, options, ThreadPool(threads));
}

std::vector<std::string> random_documents(std::mt19937& rng, int count, int words) {
  std::vector<std::string> documents;
  for (int d = 0; d < count; ++d) {
    std::string text;
    for (int w = 0; w < words; ++w) {
      for (uint32_t k = 1 + rng() % 6; k > 0; --k) text += static_cast<char>('a' + rng() % (rng() % 4 == 0 ? 8 : 3));
      text += " \n.\xFF"[rng() % 8 < 5 ? 0 : rng() % 4];
    }
    documents.push_back(text);
  }
  return documents;
}

// Training as it is defined: count all pairs anew for each merge.
std::vector<std::pair<std::string, std::string>> merges_by_definition(const std::vector<std::string>& documents,
                                                                      const Tokenizer& base, size_t wanted) {
  std::vector<std::vector<TokenId>> pieces;
  const auto scanner = GptScanner::for_pattern(kGpt2Pattern);
  for (const std::string& document : documents) {
    scanner->split(document, [&](std::string_view piece) {
      pieces.emplace_back();
      for (const char byte : piece) pieces.back().push_back(*base.find_token(bytes_to_alphabet(std::string(1, byte))));
    });
  }
  std::vector<std::string> spelled;
  std::map<std::string, bool> known;
  for (TokenId id = 0; id < base.vocab_size(); ++id) known[spelled.emplace_back(base.token_bytes(id))] = true;
  std::vector<std::pair<std::string, std::string>> merges;
  while (merges.size() < wanted) {
    std::map<std::pair<TokenId, TokenId>, int64_t> counts;
    for (const auto& piece : pieces) {
      for (size_t i = 0; i + 1 < piece.size(); ++i) ++counts[{piece[i], piece[i + 1]}];
    }
    std::pair<TokenId, TokenId> best;
    int64_t most = 0;
    for (const auto& [pair, count] : counts) {
      if (count > most && !known[spelled[static_cast<size_t>(pair.first)] + spelled[static_cast<size_t>(pair.second)]])
        best = pair, most = count;
    }
    if (most == 0) break;
    const auto merged = static_cast<TokenId>(spelled.size());
    const std::string left = spelled[static_cast<size_t>(best.first)],
                      right = spelled[static_cast<size_t>(best.second)];
    spelled.push_back(left + right);
    known[left + right] = true;
    merges.emplace_back(left, right);
    for (auto& piece : pieces) {
      for (size_t i = 0; i + 1 < piece.size(); ++i) {
        if (piece[i] != best.first || piece[i + 1] != best.second) continue;
        piece[i] = merged;
        piece.erase(piece.begin() + static_cast<ptrdiff_t>(i) + 1);
      }
    }
  }
  return merges;
}

TEST(BpeTrain, EqualsTheDefinition) {
  std::mt19937 rng(17);
  for (int round = 0; round < 12; ++round) {
    const auto documents = random_documents(rng, 3, 40 + round * 10);
    const auto trained = train(documents, 257 + 120);
    ASSERT_TRUE(trained.ok()) << trained.error().message;
    const auto base = train({}, 257);
    ASSERT_TRUE(base.ok());
    std::vector<std::pair<std::string, std::string>> merges;
    for (const BpeMerge& merge : trained->parts().merges) {
      merges.emplace_back(trained->token_bytes(merge.left), trained->token_bytes(merge.right));
    }
    ASSERT_EQ(merges, merges_by_definition(documents, *base, 120)) << round;
  }
}

TEST(BpeTrain, RunsOfOneLetter) {
  const std::vector<std::string> documents{std::string(1000, 'a') + " aaa aaaaa", std::string(77, 'a')};
  const auto trained = train(documents, 257 + 30);
  const auto base = train({}, 257);
  ASSERT_TRUE(trained.ok() && base.ok());
  std::vector<std::pair<std::string, std::string>> merges;
  for (const BpeMerge& merge : trained->parts().merges)
    merges.emplace_back(trained->token_bytes(merge.left), trained->token_bytes(merge.right));
  EXPECT_EQ(merges, merges_by_definition(documents, *base, 30));
}

TEST(BpeTrain, TheSameForAnyThreadsAndAnyOrder) {
  std::mt19937 rng(19);
  auto documents = random_documents(rng, 40, 30);
  std::string large;
  for (int i = 0; i < 6; ++i) large += random_documents(rng, 1, 120000)[0];  // cut into parts for the threads
  ASSERT_GT(large.size(), size_t{3} << 20);
  documents.push_back(large);
  const auto one = train(documents, 1000, 1);
  ASSERT_TRUE(one.ok()) << one.error().message;
  EXPECT_EQ(train(documents, 1000, 3)->to_file(), one->to_file());
  std::reverse(documents.begin(), documents.end());
  EXPECT_EQ(train(documents, 1000, 2)->to_file(), one->to_file());
}

TEST(BpeTrain, PartsOfALargeDocumentHaveThePiecesOfTheWhole) {
  std::mt19937 rng(29);
  std::string document;
  while (document.size() < size_t{5} << 20) document += test::random_text(rng, 500);
  std::map<std::string_view, int64_t> expected;
  GptScanner::for_pattern(kGpt2Pattern)->split(document, [&](std::string_view piece) { ++expected[piece]; });
  const std::string_view view = document;
  const auto counted = count_pieces({&view, 1}, ThreadPool(2));
  ASSERT_EQ(counted.size(), expected.size());
  for (const PieceCount& piece : counted) ASSERT_EQ(expected[piece.piece], piece.count);
}

TEST(BpeTrain, CountsBytesAndSpecialsInTheSize) {
  const auto trained = train({"low lower lowest low low"}, 257 + 4);
  ASSERT_TRUE(trained.ok()) << trained.error().message;
  EXPECT_EQ(trained->vocab_size(), 261);
  EXPECT_EQ(trained->eos_id(), 0);
  EXPECT_EQ(trained->token_text(0), "<|endoftext|>");
  EXPECT_EQ(trained->token_text(1), "!");
  EXPECT_EQ(trained->token_bytes(257), "lo");
  EXPECT_EQ(trained->token_bytes(258), "low");
  EXPECT_EQ(trained->decode(trained->encode("lowest \xFF\n")), "lowest \xFF\n");
}

TEST(BpeTrain, TooSmallATextGivesWhatItHas) {
  for (const std::vector<std::string>& documents : {std::vector<std::string>{}, {""}, {"", "a", "a b"}}) {
    const auto trained = train(documents, 5000);
    ASSERT_TRUE(trained.ok()) << trained.error().message;
    EXPECT_GE(trained->vocab_size(), 257);
    EXPECT_LE(trained->vocab_size(), 258);
  }
}

TEST(BpeTrain, ImpossibleSizesAndTokensAreUsageErrors) {
  for (const int64_t size : {int64_t{-1}, int64_t{0}, int64_t{256}, int64_t{1} << 40}) {
    const auto trained = train({"text"}, size);
    ASSERT_FALSE(trained.ok());
    EXPECT_EQ(trained.error().kind, ErrorKind::usage);
  }
  EXPECT_TRUE(train({"text"}, 257).ok());
  for (const std::vector<std::string>& specials : {std::vector<std::string>{""}, {"<a>", "<a>"}, {"a"}, {"\xFF"}}) {
    BpeTrainOptions options;
    options.vocab_size = 1000;
    options.special_tokens = specials;
    const auto trained = train_bpe({}, options, ThreadPool(1));
    ASSERT_FALSE(trained.ok());
    EXPECT_EQ(trained.error().kind, ErrorKind::usage);
  }
}

// A special token that the text could spell stays special: no merge makes it.
TEST(BpeTrain, NoMergeSpellsASpecialToken) {
  BpeTrainOptions options;
  options.vocab_size = 400;
  options.special_tokens = {"<end>"};
  std::string text;
  for (int i = 0; i < 100; ++i) text += "<end><end>";
  const std::string_view view = text;
  const auto trained = train_bpe({&view, 1}, options, ThreadPool(1));
  ASSERT_TRUE(trained.ok()) << trained.error().message;
  for (const TokenId id : trained->encode(text)) EXPECT_NE(id, 0);
  EXPECT_EQ(trained->encode("<end>", {.parse_special = true}), std::vector<TokenId>{0});
}

}  // namespace
}  // namespace ingot
