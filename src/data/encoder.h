// TextEncoder: what this folder needs of a tokenizer, as plain functions and numbers, so that tests can do without one.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

namespace ingot {

class Tokenizer;

struct TextEncoder {
  // Appends the ids of a text to a vector, each in [0, vocab_size). Any number of threads may call it.
  std::function<void(std::string_view text, std::vector<int32_t>& ids)> encode;
  int64_t vocab_size = 0;
  std::optional<int32_t> eos;         // goes behind every document; none: documents are not marked
  uint64_t fingerprint = 0;           // equal for encoders that encode alike
  std::vector<uint16_t> token_bytes;  // [vocab_size] bytes of text that a token stands for; special tokens 0
};

// Special tokens written in the text are plain text. Shares the tokenizer's tables.
TextEncoder encoder_of(const Tokenizer& tokenizer);

// Where a long text may be cut so that its parts, encoded one by one, give the ids of the whole: the first such place
// between `from` and `to`, or 0 if a few likely ones (behind a line's end, before a space between words) all fail. Each
// is tried: the ids around it must not change by the cut. Depends on text and encoder alone.
size_t find_clean_cut(std::string_view text, size_t from, size_t to, const TextEncoder& encoder);

}  // namespace ingot
