// BpeModel: byte-pair encoding by merge ranks (Sennrich et al. 2016, arXiv:1508.07909). Again and again the pair of
// neighbours with the lowest rank, of equals the leftmost, becomes one symbol. O(n log n) in the length of a piece.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "text/byte_trie.h"
#include "text/model.h"

namespace ingot {

struct BpeMerge {
  TokenId left, right, merged;
};

class BpeModel final : public Model {
 public:
  struct Options {
    bool byte_level = false;     // symbols are bytes; else characters
    bool ignore_merges = false;  // a piece that is a token is that token, whatever the merges say
    bool byte_fallback = false;  // characters that are no token become <0x..> tokens, one a byte
    bool fuse_unk = false;       // neighbouring unknowns become one
    TokenId unk = kNoToken;      // unknowns without it vanish
  };
  using Tokens = std::vector<std::pair<std::string_view, TokenId>>;
  // One entry a token that a piece can be made of: as bytes (byte level) or text. Merges in order of rank. byte_tokens:
  // the ids of <0x00> to <0xFF>, kNoToken where there is none (byte fallback only).
  BpeModel(const Tokens& tokens, std::span<const BpeMerge> merges, const std::array<TokenId, 256>& byte_tokens,
           Options options);
  // SentencePiece's: several merges may have one rank (ranks: by merge, ascending), and the text is searched for whole
  // tokens first, from left to right, the longest at each place (they are among the tokens, and in no merge).
  struct SentencePiece {
    std::vector<uint32_t> ranks;
    Tokens whole_tokens;
  };
  BpeModel(const Tokens& tokens, std::span<const BpeMerge> merges, const std::array<TokenId, 256>& byte_tokens,
           Options options, const SentencePiece& sentencepiece);

  void encode(std::string_view piece, ModelScratch& scratch, std::vector<TokenId>& out) const override;
  size_t next_cut(std::string_view piece, size_t from) const override;

 private:
  struct PairSlot {
    uint64_t pair = kNoPair;
    uint32_t rank = 0;
    TokenId merged = kNoToken;
  };
  static constexpr uint64_t kNoPair = UINT64_MAX;
  static uint64_t pair_of(TokenId left, TokenId right) {
    return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
  }
  void index_merges(std::span<const BpeMerge> merges, std::span<const uint32_t> ranks);
  const PairSlot* find(TokenId left, TokenId right) const;
  void rank_pair(ModelScratch::Symbol& symbol, TokenId right) const;
  void first_symbols(std::string_view piece, std::vector<ModelScratch::Symbol>& symbols) const;
  void character_symbols(std::string_view piece, std::vector<ModelScratch::Symbol>& symbols) const;
  void merge_short(std::vector<ModelScratch::Symbol>& symbols) const;
  void merge_long(ModelScratch& scratch) const;

  Options options_;
  StringIndex index_;
  ByteTrie whole_tokens_;
  std::array<TokenId, 256> single_bytes_;  // byte level: the token of each byte; else of <0x..>
  std::vector<PairSlot> pairs_;            // a power of two, open addressing
  int pair_shift_ = 0;
  bool cuts_before_blank_ = false;
};

}  // namespace ingot
