// SentencePieceNormalizer: what SentencePiece does to a text before it looks for tokens, in one pass: user-defined
// symbols stay, the longest rule applies, spaces become U+2581, extra ones go.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "text/byte_trie.h"
#include "text/precompiled_map.h"

namespace ingot {

// Immutable, thread-safe.
class SentencePieceNormalizer {
 public:
  struct Options {
    bool add_dummy_prefix = true;          // a space before the text
    bool remove_extra_whitespaces = true;  // at both ends, and all but one between words
  };
  SentencePieceNormalizer(std::optional<PrecompiledMap> rules, ByteTrie user_defined, Options options)
      : rules_(std::move(rules)), user_defined_(std::move(user_defined)), options_(options) {}

  // at_start: the text begins a whole text, so that a dummy prefix is due. Where the library writes U+FFFD for a byte
  // that is no UTF-8, the byte stays.
  std::string apply(std::string_view text, bool at_start) const;

 private:
  // What the text begins with, normalized, and how many bytes of it that is.
  std::pair<std::string_view, size_t> first(std::string_view text) const;
  std::optional<PrecompiledMap> rules_;
  ByteTrie user_defined_;
  Options options_;
};

}  // namespace ingot
