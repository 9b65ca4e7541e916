#include "data/encoder.h"

#include <algorithm>
#include <string>

#include "text/tokenizer.h"

namespace ingot {
namespace {

constexpr int kCutTrials = 32;
constexpr size_t kCutWindow = 256;  // bytes on each side of a cut that are encoded to try it

bool is_space(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}
bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// Pre-tokenizers keep a space with the word behind it, and a line's end with what stands before it.
bool is_likely_cut(std::string_view text, size_t at) {
  if (text[at - 1] == '\n') return !is_space(text[at]) && !is_space(text[at - 2]);
  return text[at] == ' ' && is_letter(text[at - 1]) && is_letter(text[at + 1]);
}

bool is_clean_cut(std::string_view text, size_t at, const TextEncoder& encoder) {
  const size_t begin = at - std::min(at, kCutWindow), end = std::min(text.size(), at + kCutWindow);
  std::vector<int32_t> whole, parts;
  encoder.encode(text.substr(begin, end - begin), whole);
  encoder.encode(text.substr(begin, at - begin), parts);
  encoder.encode(text.substr(at, end - at), parts);
  return whole == parts;
}

}  // namespace

TextEncoder encoder_of(const Tokenizer& tokenizer) {
  TextEncoder encoder;
  encoder.encode = [tokenizer](std::string_view text, std::vector<int32_t>& ids) { tokenizer.encode(text, ids); };
  encoder.vocab_size = tokenizer.vocab_size();
  encoder.eos = tokenizer.eos_id();
  encoder.fingerprint = tokenizer.fingerprint();
  encoder.token_bytes.resize(static_cast<size_t>(encoder.vocab_size));
  for (int64_t id = 0; id < encoder.vocab_size; ++id) {
    const auto token = static_cast<TokenId>(id);
    if (tokenizer.is_special(token)) continue;
    encoder.token_bytes[static_cast<size_t>(id)] =
        static_cast<uint16_t>(std::min<size_t>(tokenizer.token_bytes(token).size(), 65535));
  }
  return encoder;
}

size_t find_clean_cut(std::string_view text, size_t from, size_t to, const TextEncoder& encoder) {
  int trials = 0;
  const size_t last = std::min(to, text.size() - std::min<size_t>(text.size(), 1));
  for (size_t at = std::max<size_t>(from, 2); at < last; ++at) {
    if (!is_likely_cut(text, at)) continue;
    if (is_clean_cut(text, at, encoder)) return at;
    if (++trials == kCutTrials) break;
  }
  return 0;
}

}  // namespace ingot
