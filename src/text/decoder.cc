#include "text/decoder.h"

#include <algorithm>
#include <charconv>

#include "text/byte_alphabet.h"
#include "text/json_reader.h"
#include "text/metaspace.h"
#include "text/normalizer.h"
#include "text/overloaded.h"

namespace ingot {
namespace {

constexpr int kMostNested = 16;
constexpr int64_t kMostStripped = 1 << 20;

}  // namespace

int fallback_byte(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token.back() != '>') return -1;
  int byte = -1;
  const auto [end, error] = std::from_chars(token.data() + 3, token.data() + 5, byte, 16);
  return error == std::errc() && end == token.data() + 5 ? byte : -1;
}

std::string strip(std::string text, const Decoder::Strip& rule) {
  size_t begin = 0, end = text.size();
  const size_t size = rule.content.size();
  const auto is_content = [&](size_t at) { return text.compare(at, size, rule.content) == 0; };
  for (int64_t i = 0; i < rule.start && end - begin >= size && is_content(begin); ++i) begin += size;
  for (int64_t i = 0; i < rule.stop && end - begin >= size && is_content(end - size); ++i) end -= size;
  return text.substr(begin, end - begin);
}

// The order and the rules of Hugging Face's library.
std::string Decoder::WordPiece::token_bytes(std::string token, bool is_first) const {
  static constexpr std::pair<std::string_view, std::string_view> kCleaned[] = {
      {" .", "."},   {" ?", "?"},           {" !", "!"},   {" ,", ","},     {" ' ", "'"},   {" n't", "n't"},
      {" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  if (!is_first) token = token.starts_with(prefix) ? token.substr(prefix.size()) : " " + token;
  if (!cleanup) return token;
  for (const auto& [from, to] : kCleaned) token = replace_all(token, from, to);
  return token;
}

Result<Decoder::Step> Decoder::read_step(const std::string& type, const JsonPlace& place) {
  if (type == "ByteLevel") {
    INGOT_TRY(place.is_object_with({"type", "add_prefix_space", "trim_offsets", "use_regex"}));
    return Step(ByteLevel{});
  }
  if (type == "ByteFallback") {
    INGOT_TRY(place.is_object_with({"type"}));
    return Step(ByteFallback{});
  }
  if (type == "Replace") {
    INGOT_TRY(place.is_object_with({"type", "pattern", "content"}));
    INGOT_ASSIGN(std::string from, read_string_pattern(place["pattern"]));
    INGOT_ASSIGN(std::string to, place["content"].string());
    return Step(Replace{std::move(from), std::move(to)});
  }
  if (type == "Metaspace") {
    INGOT_ASSIGN(const MetaspaceRule rule, MetaspaceRule::read(place));
    return Step(Metaspace{rule.replacement, rule.prepend != MetaspaceRule::Prepend::never});
  }
  INGOT_TRY(place.is_object_with({"type", "prefix", "cleanup"}));
  WordPiece pieces;
  INGOT_ASSIGN(pieces.prefix, place["prefix"].string());
  INGOT_ASSIGN(pieces.cleanup, place["cleanup"].boolean_or(true));
  return Step(std::move(pieces));
}

Status Decoder::add(const JsonPlace& place, int depth) {
  static constexpr std::string_view kKnown[] = {"ByteLevel", "Replace", "ByteFallback", "Metaspace",
                                                "WordPiece", "Fuse",    "Strip",        "Sequence"};
  INGOT_ASSIGN(const std::string type, place.type());
  if (std::ranges::find(kKnown, type) == std::end(kKnown))
    return place["type"].unsupported(
        fmt::format("the decoder {} (known: {})", describe(type), fmt::join(kKnown, ", ")));
  if (type == "Sequence") {
    INGOT_TRY(place.is_object_with({"type", "decoders"}));
    const JsonPlace list = place["decoders"];
    INGOT_TRY(list.is_array());
    if (depth == kMostNested) return place.unsupported("a Sequence nested this deep");
    for (size_t i = 0; i < list.value().size(); ++i) INGOT_TRY(add(list[i], depth + 1));
    return {};
  }
  if (type == "Fuse") {
    fused_ = true;
    return place.is_object_with({"type"});
  }
  if (type == "Strip") {
    INGOT_TRY(place.is_object_with({"type", "content", "start", "stop"}));
    Strip rule;
    INGOT_ASSIGN(rule.content, place["content"].string());
    if (rule.content.empty()) return place["content"].expected("one character");
    INGOT_ASSIGN(rule.start, place["start"].integer(0, kMostStripped));
    INGOT_ASSIGN(rule.stop, place["stop"].integer(0, kMostStripped));
    if (!fused_) {
      steps_.emplace_back(std::move(rule));
      return {};
    }
    if (!text_strip_.content.empty()) return place.unsupported("a second Strip after Fuse");
    text_strip_ = std::move(rule);
    return {};
  }
  if (fused_) return place.unsupported(fmt::format("the decoder {} after the tokens were fused", describe(type)));
  if (steps_.size() == kMostNested) return place.unsupported("a Sequence this long");
  INGOT_ASSIGN(Step step, read_step(type, place));
  steps_.push_back(std::move(step));
  fused_ = type == "ByteLevel";
  joins_words_ = joins_words_ || type == "WordPiece";
  return {};
}

Result<Decoder> Decoder::read(const JsonPlace& place) {
  if (place.is_null()) return place.unsupported("no decoder (null)");
  Decoder decoder;
  INGOT_TRY(decoder.add(place, 0));
  return decoder;
}

std::string Decoder::token_bytes(std::string_view token, bool is_first) const {
  std::string current(token);
  for (const auto& step : steps_) {
    current = std::visit(
        Overloaded{[&](const ByteLevel&) { return alphabet_to_bytes(current).value_or(current); },
                   [&](const ByteFallback&) {
                     const int byte = fallback_byte(current);
                     return byte < 0 ? current : std::string(1, static_cast<char>(byte));
                   },
                   [&](const Replace& replace) { return replace_all(current, replace.from, replace.to); },
                   [&](const Strip& rule) { return strip(current, rule); },
                   [&](const Metaspace& space) {
                     return replace_all(current, space.replacement, is_first && space.drops_first ? "" : " ");
                   },
                   [&](const WordPiece& pieces) { return pieces.token_bytes(current, is_first); }},
        step);
  }
  return current;
}

}  // namespace ingot
