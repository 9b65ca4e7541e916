// Decoder: what bytes a token of the vocabulary stands for. ByteLevel, Replace (of a string), ByteFallback, Fuse, Strip
// and sequences of them. Bytes come out verbatim: where Hugging Face's library writes U+FFFD for bytes that are no
// UTF-8, Ingot gives the bytes.
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

  std::string token_bytes(std::string_view token) const;
  const Strip& text_strip() const { return text_strip_; }

 private:
  struct ByteLevel {};
  struct ByteFallback {};
  struct Replace {
    std::string from, to;
  };
  Status add(const JsonPlace& place, int depth);
  std::vector<std::variant<ByteLevel, ByteFallback, Replace, Strip>> steps_;  // token by token
  bool fused_ = false;
  Strip text_strip_;
};

std::string strip(std::string text, const Decoder::Strip& rule);

// The byte of a token written "<0x41>", else -1.
int fallback_byte(std::string_view token);

}  // namespace ingot
