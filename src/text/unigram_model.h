// UnigramModel: of all ways to cut a piece into tokens the one with the highest sum of scores (Kudo 2018,
// arXiv:1804.10959), as Hugging Face's library finds it: sums in double from left to right, of equal sums the one found
// first. A character that no token begins and ends with may be unknown, at the cost of the lowest score less 10;
// neighbouring unknowns become one.
#pragma once

#include <array>
#include <utility>
#include <vector>

#include "text/byte_trie.h"
#include "text/model.h"

namespace ingot {

class UnigramModel final : public Model {
 public:
  struct Options {
    bool byte_fallback = false;  // unknowns become <0x..> tokens, one a byte, where there are all of them
    TokenId unk = kNoToken;      // unknowns without it vanish
    bool float_sums = false;     // sums are rounded to float, as SentencePiece does
  };
  // tokens: what a piece can be made of. scores: by id. byte_tokens: the ids of <0x00> to <0xFF>, kNoToken where there
  // is none. lowest_score: of the whole vocabulary.
  UnigramModel(const std::vector<std::pair<std::string_view, TokenId>>& tokens, std::vector<double> scores,
               double lowest_score, const std::array<TokenId, 256>& byte_tokens, Options options);

  void encode(std::string_view piece, ModelScratch& scratch, std::vector<TokenId>& out) const override;
  // Never cuts: the rounding of the sums, which decides between equals, depends on where a piece begins.
  size_t next_cut(std::string_view piece, size_t) const override { return piece.size(); }

 private:
  void find_best_path(std::string_view piece, std::vector<ModelScratch::PathNode>& path) const;
  void add_unknown(std::string_view text, std::vector<TokenId>& out) const;

  Options options_;
  ByteTrie trie_;
  std::vector<double> scores_;  // by id
  double unknown_score_;
  std::array<TokenId, 256> byte_tokens_;
};

}  // namespace ingot
