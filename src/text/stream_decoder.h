// StreamDecoder: turns ids into text as they come, for output that a person watches. What push() returned so far plus
// flush() is Tokenizer::decode of all ids.
#pragma once

#include <string>
#include <string_view>

#include "text/tokenizer.h"

namespace ingot {

// One thread at a time. Keeps its tokenizer's tables alive.
class StreamDecoder {
 public:
  explicit StreamDecoder(Tokenizer tokenizer, bool skip_special = false);

  // The text that is complete with this id: never a part of a character. Bytes that are not valid UTF-8 come out,
  // unchanged, as soon as no further byte could make them valid.
  std::string push(TokenId id);
  // What is still held back; the next push starts a new text.
  std::string flush();

 private:
  Tokenizer tokenizer_;
  bool skip_special_;
  bool is_first_ = true;    // no token has come yet
  int64_t strip_left_ = 0;  // characters that the decoder's Strip may still take from the start
  std::string held_;        // decoded bytes not yet given out
};

}  // namespace ingot
