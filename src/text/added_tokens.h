// AddedTokens: tokens that are found in the text as they are written, before anything else looks at it (special tokens,
// and others that were added to a trained vocabulary).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/parallel.h"
#include "base/result.h"
#include "text/normalizer.h"
#include "text/vocabulary.h"

namespace ingot {

class JsonPlace;

struct AddedToken {
  TokenId id = kNoToken;
  std::string content;
  bool special = false;      // counts as a token only where the caller allows specials
  bool single_word = false;  // not beside a word character
  bool lstrip = false;       // takes the white space before it along
  bool rstrip = false;       // takes the white space after it along
  bool normalized = true;    // is looked for in the normalized text, itself normalized
};

// The "added_tokens" of a tokenizer.json.
Result<std::vector<AddedToken>> read_added_tokens(const JsonPlace& place);

class AddedTokens {
 public:
  AddedTokens() = default;
  AddedTokens(std::vector<AddedToken> tokens, const Normalizer& normalizer);

  const std::vector<AddedToken>& tokens() const { return tokens_; }

  // Calls emit(segment, kNoToken) for each stretch of text without tokens (never empty) and emit(segment, id) for each
  // token, in order: at each place the longest token. `normalized` chooses which of the tokens are looked for.
  void split(std::string_view text, bool normalized, bool parse_special,
             FunctionRef<void(std::string_view segment, TokenId id)> emit) const;
  // Whether split could find anything at all.
  bool any(bool normalized, bool parse_special) const { return !trie(normalized, parse_special).nodes.empty(); }

 private:
  struct Node {
    unsigned char byte = 0;
    int32_t first_child = -1, sibling = -1;
    int32_t token = -1;  // index into tokens_ of the token that ends here
  };
  struct Trie {
    std::vector<Node> nodes;  // [0] is the root; empty without tokens
    std::array<bool, 256> starts{};
    void add(std::string_view text, int32_t token);
    int32_t child(int32_t node, unsigned char byte) const;
    // The longest token at the start of text: its index and length.
    std::pair<int32_t, size_t> longest(std::string_view text) const;
  };
  const Trie& trie(bool normalized, bool with_special) const {
    return tries_[normalized ? 1 : 0][with_special ? 1 : 0];
  }

  std::vector<AddedToken> tokens_;
  std::array<std::array<Trie, 2>, 2> tries_;  // [normalized][with special]
};

}  // namespace ingot
