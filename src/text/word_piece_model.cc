#include "text/word_piece_model.h"

#include <algorithm>

#include "text/utf8.h"

namespace ingot {
namespace {

using Tokens = std::vector<std::pair<std::string_view, TokenId>>;

Tokens inside_words(const Tokens& tokens, const std::string& prefix) {
  Tokens inside;
  for (const auto& [text, id] : tokens) {
    if (text.starts_with(prefix)) inside.emplace_back(text.substr(prefix.size()), id);
  }
  return inside;
}

bool longer_than(std::string_view word, int64_t characters) {
  const auto* p = reinterpret_cast<const unsigned char*>(word.data());
  const auto* end = p + word.size();
  while (p < end) {
    if (characters-- == 0) return true;
    p += std::max<size_t>(decode_utf8(p, end).size, 1);
  }
  return false;
}

}  // namespace

WordPieceModel::WordPieceModel(const Tokens& tokens, Options options)
    : options_(std::move(options)), begin_(tokens), inside_(inside_words(tokens, options_.prefix)) {}

void WordPieceModel::encode(std::string_view piece, ModelScratch&, std::vector<TokenId>& out) const {
  const size_t before = out.size();
  bool whole = !longer_than(piece, options_.longest_word);
  for (size_t at = 0; whole && at < piece.size();) {
    size_t longest = 0;
    TokenId token = kNoToken;
    (at == 0 ? begin_ : inside_).prefixes(piece.substr(at), [&](size_t length, TokenId id) {
      longest = length;
      token = id;
    });
    whole = token != kNoToken;
    if (whole) out.push_back(token);
    at += longest;
  }
  if (whole) return;
  out.resize(before);
  out.push_back(options_.unk);
}

}  // namespace ingot
