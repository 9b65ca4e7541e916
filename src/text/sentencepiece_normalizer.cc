#include "text/sentencepiece_normalizer.h"

#include <algorithm>

#include "text/utf8.h"

namespace ingot {
namespace {

constexpr std::string_view kBlank = "\xE2\x96\x81";  // U+2581

}  // namespace

std::pair<std::string_view, size_t> SentencePieceNormalizer::first(std::string_view text) const {
  size_t symbol = 0;
  user_defined_.prefixes(text, [&](size_t length, TokenId) { symbol = length; });
  if (symbol > 0) return {text.substr(0, symbol), symbol};
  if (rules_) {
    if (const auto [size, other] = rules_->longest_at(text); size > 0) return {other, size};
  }
  const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
  const size_t size = std::max<size_t>(decode_utf8(bytes, bytes + text.size()).size, 1);
  return {text.substr(0, size), size};
}

std::string SentencePieceNormalizer::apply(std::string_view text, bool at_start) const {
  const bool removes = options_.remove_extra_whitespaces;
  std::string out;
  out.reserve(text.size() + text.size() / 2 + kBlank.size());
  while (removes && !text.empty()) {
    const auto [piece, size] = first(text);
    if (piece != " ") break;
    text.remove_prefix(size);
  }
  if (text.empty()) return out;
  if (options_.add_dummy_prefix && at_start) out += kBlank;
  bool after_space = removes;
  while (!text.empty()) {
    auto [piece, size] = first(text);
    while (after_space && piece.starts_with(' ')) piece.remove_prefix(1);
    for (const char c : piece) {
      if (c == ' ') {
        out += kBlank;
      } else {
        out += c;
      }
    }
    if (!piece.empty()) after_space = removes && piece.ends_with(' ');
    text.remove_prefix(size);
  }
  while (removes && out.ends_with(kBlank)) out.resize(out.size() - kBlank.size());
  return out;
}

}  // namespace ingot
