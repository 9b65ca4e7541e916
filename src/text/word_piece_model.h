// WordPieceModel: takes the longest token that the rest of a word begins with, again and again; tokens inside a word
// are written with a prefix (##). A word that cannot be finished so, or is too long, is one unknown.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "text/byte_trie.h"
#include "text/model.h"

namespace ingot {

class WordPieceModel final : public Model {
 public:
  struct Options {
    std::string prefix = "##";
    int64_t longest_word = 100;  // characters
    TokenId unk = kNoToken;
  };
  WordPieceModel(const std::vector<std::pair<std::string_view, TokenId>>& tokens, Options options);

  void encode(std::string_view piece, ModelScratch& scratch, std::vector<TokenId>& out) const override;
  size_t next_cut(std::string_view piece, size_t) const override { return piece.size(); }

 private:
  Options options_;
  ByteTrie begin_, inside_;  // tokens at the start of a word as written; the others without their prefix
};

}  // namespace ingot
