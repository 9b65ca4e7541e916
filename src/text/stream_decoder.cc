#include "text/stream_decoder.h"

#include "text/tokenizer_parts.h"
#include "text/utf8.h"

namespace ingot {

StreamDecoder::StreamDecoder(Tokenizer tokenizer, bool skip_special)
    : tokenizer_(std::move(tokenizer)), skip_special_(skip_special) {
  strip_left_ = tokenizer_.parts().decoder.text_strip().start;
}

std::string StreamDecoder::push(TokenId id) {
  const TokenizerParts& parts = tokenizer_.parts();
  if (!parts.vocabulary.contains(id) || (skip_special_ && parts.vocabulary.special(id))) return {};
  held_ += is_first_ ? parts.vocabulary.first_bytes(id) : parts.vocabulary.bytes(id);
  is_first_ = false;
  const Decoder::Strip& rule = parts.decoder.text_strip();
  const size_t size = rule.content.size();
  while (strip_left_ > 0 && !held_.empty()) {
    if (held_.starts_with(rule.content)) {
      held_.erase(0, size);
      --strip_left_;
    } else if (rule.content.starts_with(held_)) {
      return {};  // may become what is stripped
    } else {
      strip_left_ = 0;
    }
  }
  size_t ready = closed_utf8_prefix(held_);
  for (int64_t i = 0; i < rule.stop && ready >= size && held_.compare(ready - size, size, rule.content) == 0; ++i)
    ready -= size;
  std::string text = held_.substr(0, ready);
  held_.erase(0, ready);
  return text;
}

std::string StreamDecoder::flush() {
  const Decoder::Strip& rule = tokenizer_.parts().decoder.text_strip();
  std::string text = std::move(held_);
  held_.clear();
  is_first_ = true;
  strip_left_ = rule.start;
  if (rule.content.empty()) return text;
  return strip(std::move(text), {rule.content, 0, rule.stop});
}

}  // namespace ingot
