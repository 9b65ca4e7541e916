#include "text/added_tokens.h"

#include <algorithm>

#include "text/json_reader.h"
#include "text/utf8.h"

namespace ingot {
namespace {

const unsigned char* bytes_of(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

// The first byte of the last character of text (not empty).
size_t last_char(std::string_view text) {
  for (size_t back = 1; back <= std::min<size_t>(4, text.size()); ++back) {
    const size_t at = text.size() - back;
    if (decode_utf8(bytes_of(text) + at, bytes_of(text) + text.size()).size == back) return at;
  }
  return text.size() - 1;
}

bool is_word_at(std::string_view text, size_t at) {
  if (at >= text.size()) return false;
  const Utf8Char c = decode_utf8(bytes_of(text) + at, bytes_of(text) + text.size());
  return c.size > 0 && is_word_char(c.code);
}

size_t space_before(std::string_view text, size_t end, size_t begin) {
  while (end > begin) {
    const size_t at = last_char(text.substr(0, end));
    if (at < begin || classify_at(bytes_of(text) + at, bytes_of(text) + end).type != CharClass::space) break;
    end = at;
  }
  return end;
}

size_t space_after(std::string_view text, size_t begin) {
  while (begin < text.size()) {
    const ClassifiedChar c = classify_at(bytes_of(text) + begin, bytes_of(text) + text.size());
    if (c.type != CharClass::space) break;
    begin += c.size;
  }
  return begin;
}

Result<AddedToken> read_token(const JsonPlace& place) {
  INGOT_TRY(place.is_object_with({"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"}));
  AddedToken token;
  INGOT_ASSIGN(const int64_t id, place["id"].integer(0, kMostTokens - 1));
  token.id = static_cast<TokenId>(id);
  INGOT_ASSIGN(token.content, place["content"].string());
  if (token.content.empty()) return place["content"].expected("a string that is not empty");
  INGOT_ASSIGN(token.special, place["special"].boolean_or(false));
  INGOT_ASSIGN(token.single_word, place["single_word"].boolean_or(false));
  INGOT_ASSIGN(token.lstrip, place["lstrip"].boolean_or(false));
  INGOT_ASSIGN(token.rstrip, place["rstrip"].boolean_or(false));
  INGOT_ASSIGN(token.normalized, place["normalized"].boolean_or(!token.special));
  return token;
}

}  // namespace

Result<std::vector<AddedToken>> read_added_tokens(const JsonPlace& place) {
  std::vector<AddedToken> tokens;
  if (place.is_null()) return tokens;
  INGOT_TRY(place.is_array());
  tokens.reserve(place.value().size());
  for (size_t i = 0; i < place.value().size(); ++i) {
    INGOT_ASSIGN(AddedToken token, read_token(place[i]));
    tokens.push_back(std::move(token));
  }
  return tokens;
}

void AddedTokens::Trie::add(std::string_view text, int32_t token) {
  if (text.empty()) return;
  if (nodes.empty()) nodes.emplace_back();
  starts[static_cast<unsigned char>(text[0])] = true;
  int32_t at = 0;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    int32_t next = child(at, byte);
    if (next < 0) {
      next = static_cast<int32_t>(nodes.size());
      nodes.push_back({byte, -1, nodes[static_cast<size_t>(at)].first_child, -1});
      nodes[static_cast<size_t>(at)].first_child = next;
    }
    at = next;
  }
  if (nodes[static_cast<size_t>(at)].token < 0) nodes[static_cast<size_t>(at)].token = token;
}

int32_t AddedTokens::Trie::child(int32_t node, unsigned char byte) const {
  int32_t at = nodes[static_cast<size_t>(node)].first_child;
  while (at >= 0 && nodes[static_cast<size_t>(at)].byte != byte) at = nodes[static_cast<size_t>(at)].sibling;
  return at;
}

std::pair<int32_t, size_t> AddedTokens::Trie::longest(std::string_view text) const {
  std::pair<int32_t, size_t> best{-1, 0};
  int32_t at = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    at = child(at, static_cast<unsigned char>(text[i]));
    if (at < 0) break;
    if (const int32_t token = nodes[static_cast<size_t>(at)].token; token >= 0) best = {token, i + 1};
  }
  return best;
}

AddedTokens::AddedTokens(std::vector<AddedToken> tokens, const Normalizer& normalizer) : tokens_(std::move(tokens)) {
  for (size_t i = 0; i < tokens_.size(); ++i) {
    const AddedToken& token = tokens_[i];
    const std::string text = token.normalized ? normalizer.apply(token.content) : token.content;
    auto& tries = tries_[token.normalized ? 1 : 0];
    tries[1].add(text, static_cast<int32_t>(i));
    if (!token.special) tries[0].add(text, static_cast<int32_t>(i));
  }
}

void AddedTokens::split(std::string_view text, bool normalized, bool parse_special,
                        FunctionRef<void(std::string_view segment, TokenId id)> emit) const {
  const Trie& tokens = trie(normalized, parse_special);
  size_t done = 0;
  for (size_t at = 0; at < text.size() && !tokens.nodes.empty();) {
    if (!tokens.starts[static_cast<unsigned char>(text[at])]) {
      ++at;
      continue;
    }
    const auto [index, size] = tokens.longest(text.substr(at));
    if (index < 0) {
      ++at;
      continue;
    }
    const AddedToken& token = tokens_[static_cast<size_t>(index)];
    size_t begin = at, end = at + size;
    at = end;
    if (token.single_word &&
        ((begin > 0 && is_word_at(text, last_char(text.substr(0, begin)))) || is_word_at(text, end)))
      continue;
    if (token.lstrip) begin = space_before(text, begin, done);
    if (token.rstrip) at = end = space_after(text, end);
    if (begin > done) emit(text.substr(done, begin - done), kNoToken);
    emit(text.substr(begin, end - begin), token.id);
    done = end;
  }
  if (done < text.size()) emit(text.substr(done), kNoToken);
}

}  // namespace ingot
