// Model: the part of a tokenizer that turns a piece of text into ids.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "text/vocabulary.h"

namespace ingot {

// Memory that a model works in, reused from piece to piece. One thread at a time.
struct ModelScratch {
  struct Symbol {
    TokenId id;
    uint32_t rank;   // of the pair with the next symbol; kNoRank: none
    TokenId merged;  // what that pair becomes
    uint32_t next, previous;
  };
  static constexpr uint32_t kNoRank = UINT32_MAX;
  std::vector<Symbol> symbols;
  std::vector<uint64_t> queue;

  // The best way to reach a place of a piece, for UnigramModel.
  struct PathNode {
    double score;
    uint32_t start;  // where its last token begins; kNoStart: the place cannot be reached
    TokenId id;
  };
  static constexpr uint32_t kNoStart = UINT32_MAX;
  std::vector<PathNode> path;
  std::vector<uint32_t> steps;
};

// Immutable, thread-safe.
class Model {
 public:
  virtual ~Model() = default;
  // Appends the ids of a piece.
  virtual void encode(std::string_view piece, ModelScratch& scratch, std::vector<TokenId>& out) const = 0;
  // The first place after `from` where a piece may be cut in two without changing its ids; its size if there is none.
  // Lets long pieces that the pre-tokenizer leaves whole go through the cache in parts.
  virtual size_t next_cut(std::string_view piece, size_t from) const = 0;
};

}  // namespace ingot
