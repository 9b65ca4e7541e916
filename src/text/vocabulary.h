// Vocabulary: for each id the token as it is written, the bytes that it stands for, in general and as the first token
// of a text, and whether it is special. StringIndex: the way back from strings to ids.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ingot {

using TokenId = int32_t;
constexpr TokenId kNoToken = -1;
constexpr int64_t kMostTokens = int64_t{1} << 22;  // ids are below; far above any vocabulary that is trained

class Vocabulary {
 public:
  explicit Vocabulary(int64_t size = 0) : tokens_(static_cast<size_t>(size)) {}

  void set(TokenId id, std::string_view text, std::string_view bytes, std::string_view first_bytes, bool special);

  int64_t size() const { return static_cast<int64_t>(tokens_.size()); }
  bool contains(TokenId id) const { return id >= 0 && id < size() && tokens_[static_cast<size_t>(id)].known; }
  // "" and false for an id that is not contained.
  std::string_view text(TokenId id) const {
    return contains(id) ? view(at(id).text, at(id).text_size) : std::string_view();
  }
  std::string_view bytes(TokenId id) const {
    return contains(id) ? view(at(id).bytes, at(id).bytes_size) : std::string_view();
  }
  std::string_view first_bytes(TokenId id) const {
    return contains(id) ? view(at(id).first, at(id).first_size) : std::string_view();
  }
  bool special(TokenId id) const { return contains(id) && at(id).special; }

 private:
  struct Token {
    uint64_t text = 0, bytes = 0, first = 0;  // offsets into arena_
    uint32_t text_size = 0, bytes_size = 0, first_size = 0;
    bool known = false, special = false;
  };
  const Token& at(TokenId id) const { return tokens_[static_cast<size_t>(id)]; }
  std::string_view view(uint64_t offset, uint32_t size) const { return std::string_view(arena_).substr(offset, size); }
  std::vector<Token> tokens_;
  std::string arena_;
};

// An immutable hash table from strings to ids, with its own copy of the strings.
class StringIndex {
 public:
  StringIndex() : slots_(1) {}
  explicit StringIndex(
      const std::vector<std::pair<std::string_view, TokenId>>& entries);  // of equal strings the first counts
  TokenId find(std::string_view text) const;                              // kNoToken: not there

 private:
  struct Slot {
    uint64_t hash = 0;
    uint64_t offset = 0;
    uint32_t size = 0;
    TokenId id = kNoToken;
  };
  std::vector<Slot> slots_;  // a power of two, open addressing
  std::string arena_;
};

}  // namespace ingot
