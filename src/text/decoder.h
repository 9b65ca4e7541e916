// Decoder: what bytes a token of the vocabulary stands for, first in a text and after others. ByteLevel, Replace (of a
// string), ByteFallback, Metaspace, WordPiece, Fuse, Strip and sequences of them. Bytes come out verbatim: where
// Hugging Face's library writes U+FFFD for bytes that are no UTF-8, Ingot gives the bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"

namespace ingot {

class JsonPlace;

class Decoder {
 public:
  // What is taken off the whole text, after all tokens were joined.
  struct Strip {
    std::string content;          // one character
    int64_t start = 0, stop = 0;  // at most so many at each end
  };

  static Result<Decoder> read(const JsonPlace& place);

  // is_first: nothing stands before the token.
  std::string token_bytes(std::string_view token, bool is_first) const;
  // Whether tokens are words that get spaces between them, so that added tokens do too.
  bool joins_words() const { return joins_words_; }
  const Strip& text_strip() const { return text_strip_; }

 private:
  struct ByteLevel {};
  struct ByteFallback {};
  struct Metaspace {
    std::string replacement;
    bool drops_first = true;  // the first token loses it; elsewhere it is a space
  };
  struct WordPiece {
    std::string prefix;
    bool cleanup = true;
    std::string token_bytes(std::string token, bool is_first) const;
  };
  struct Replace {
    std::string from, to;
  };
  Status add(const JsonPlace& place, int depth);
  using Step = std::variant<ByteLevel, ByteFallback, Replace, Strip, Metaspace, WordPiece>;
  static Result<Step> read_step(const std::string& type, const JsonPlace& place);
  std::vector<Step> steps_;  // token by token
  bool fused_ = false, joins_words_ = false;
  Strip text_strip_;
};

std::string strip(std::string text, const Decoder::Strip& rule);

// The byte of a token written "<0x41>", else -1.
int fallback_byte(std::string_view token);

}  // namespace ingot
