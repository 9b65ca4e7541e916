// PrecompiledMap: SentencePiece's normalization rules (the "precompiled_charsmap" of a model) as Hugging Face's library
// applies them. The bytes are the size of a double array (32 bits, little-endian), the array (Darts-clone: units of 32
// bits), and the replacements, each ended by a zero byte.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace ingot {

// Immutable, thread-safe; copies share the rules.
class PrecompiledMap {
 public:
  // The error says what is wrong with the bytes. A damaged array inside bounds gives wrong text, never a wrong access.
  static Result<PrecompiledMap> read(std::string_view bytes);

  // Each grapheme cluster of less than 6 bytes is replaced by the rule for the shortest prefix of it that has one;
  // where there is none, and in longer clusters, each character. Bytes that are not valid UTF-8 stay.
  std::string apply(std::string_view text) const;
  // SentencePiece's own way: the longest beginning of text that has a rule, its size and its replacement; size 0 where
  // none has.
  std::pair<size_t, std::string_view> longest_at(std::string_view text) const;
  // The length of the longest replacement.
  size_t longest() const;

 private:
  struct Rules {
    std::vector<uint32_t> units;
    std::string replacements;
  };
  // Calls found(size, replacement) for each prefix of text that has a rule, shortest first, until it returns false.
  template <class F>
  void prefixes(std::string_view text, F&& found) const;
  // The replacement for the shortest of them; nullptr data where there is none.
  std::string_view find(std::string_view text) const;
  void apply_to_cluster(std::string_view cluster, std::string& out) const;
  std::shared_ptr<const Rules> rules_;
};

// The bytes that standard base64 (RFC 4648, padded) stands for.
Result<std::string> decode_base64(std::string_view text);

}  // namespace ingot
