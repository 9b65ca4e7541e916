#include "text/normalizer.h"

#include <algorithm>

#include "text/char_properties.h"
#include "text/json_reader.h"
#include "text/precompiled_map.h"
#include "text/regex.h"
#include "text/utf8.h"

namespace ingot {
namespace {

constexpr int kMostNested = 16;
constexpr size_t kMostGrowth = 4096;  // replacements that together make a text longer than so many times are refused

// Each character as change(code, out) writes it; invalid bytes as they are.
template <class F>
std::string map_characters(std::string_view text, F&& change) {
  std::string out;
  out.reserve(text.size());
  const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
  for (size_t begin = 0; begin < text.size();) {
    const Utf8Char c = decode_utf8(bytes + begin, bytes + text.size());
    if (c.size == 0) {
      out += text[begin++];
      continue;
    }
    change(c.code, out);
    begin += c.size;
  }
  return out;
}

std::string lower(std::string_view text) {
  return map_characters(text, append_lower);
}

std::string clean(std::string_view text) {
  return map_characters(text, [](char32_t code, std::string& out) {
    if (is_removed_control(code)) return;
    append_utf8(is_white_space(code) ? ' ' : code, out);
  });
}

std::string space_ideographs(std::string_view text) {
  return map_characters(text, [](char32_t code, std::string& out) {
    const bool spaced = is_cjk_ideograph(code);
    if (spaced) out += ' ';
    append_utf8(code, out);
    if (spaced) out += ' ';
  });
}

template <bool is_removed(char32_t)>
std::string without(std::string_view text) {
  return map_characters(text, [](char32_t code, std::string& out) {
    if (!is_removed(code)) append_utf8(code, out);
  });
}

// What SentencePiece's "nmt" rules do with control characters and odd spaces.
std::string nmt(std::string_view text) {
  return map_characters(text, [](char32_t code, std::string& out) {
    if ((code >= 0x01 && code <= 0x08) || code == 0x0B || (code >= 0x0E && code <= 0x1F) || code == 0x7F ||
        code == 0x8F || code == 0x9F) {
      return;
    }
    const bool space = code == 0x09 || code == 0x0A || code == 0x0C || code == 0x0D || code == 0x1680 ||
                       (code >= 0x200B && code <= 0x200F) || code == 0x2028 || code == 0x2029 || code == 0x2581 ||
                       code == 0xFEFF || code == 0xFFFD;
    append_utf8(space ? ' ' : code, out);
  });
}

std::string strip_ends(std::string_view text, bool left, bool right) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
  size_t begin = 0, end = 0;  // end: after the last character that is no space
  bool seen = false;
  for (size_t at = 0; at < text.size();) {
    const ClassifiedChar c = classify_at(bytes + at, bytes + text.size());
    if (c.type != CharClass::space) {
      if (!seen) begin = at;
      seen = true;
      end = at + c.size;
    }
    at += c.size;
  }
  if (!seen) begin = end = left ? text.size() : 0;
  if (!left) begin = 0;
  if (!right) end = text.size();
  return std::string(text.substr(begin, end - begin));
}

std::string replace_matches(const Regex& regex, std::string_view text, std::string_view to) {
  std::string out;
  size_t done = 0;
  regex.find_all(text, [&](size_t begin, size_t end) {
    begin = std::max(begin, done);  // \K may have put it before
    out.append(text, done, begin - done).append(to);
    done = std::max(done, end);
  });
  return out.append(text, done);
}

using Apply = std::function<std::string(std::string_view text)>;

// How many times as long `to` is as what it stands for.
size_t growth_of(size_t from, size_t to) {
  return std::max<size_t>(1, (to + from - 1) / from);
}

Result<std::pair<Apply, size_t>> read_replace(const JsonPlace& place) {
  INGOT_TRY(place.is_object_with({"type", "pattern", "content"}));
  INGOT_ASSIGN(std::string to, place["content"].string());
  const JsonPlace pattern = place["pattern"];
  if (!pattern["Regex"].is_null()) {
    INGOT_TRY(pattern.is_object_with({"String", "Regex"}));
    INGOT_ASSIGN(const std::string text, pattern["Regex"].string());
    auto regex = Regex::compile(text);
    if (!regex.ok()) return pattern.wrong(regex.error().message);
    return std::pair(
        Apply([regex = *regex, to](std::string_view source) { return replace_matches(regex, source, to); }),
        to.size() + 1);  // it may match between any two bytes
  }
  INGOT_ASSIGN(std::string from, read_string_pattern(pattern));
  return std::pair(Apply([from, to](std::string_view text) { return replace_all(text, from, to); }),
                   growth_of(from.size(), to.size()));
}

Result<Apply> read_bert(const JsonPlace& place) {
  INGOT_TRY(place.is_object_with({"type", "clean_text", "handle_chinese_chars", "strip_accents", "lowercase"}));
  INGOT_ASSIGN(const bool clean_text, place["clean_text"].boolean_or(true));
  INGOT_ASSIGN(const bool ideographs, place["handle_chinese_chars"].boolean_or(true));
  INGOT_ASSIGN(const bool lowercase, place["lowercase"].boolean_or(true));
  INGOT_ASSIGN(const bool accents, place["strip_accents"].boolean_or(lowercase));
  return Apply([=](std::string_view text) {
    std::string out(text);
    if (clean_text) out = clean(out);
    if (ideographs) out = space_ideographs(out);
    if (accents) out = without<is_nonspacing_mark>(UnicodeForm{.compose = false, .compatible = false}.apply(out));
    if (lowercase) out = lower(out);
    return out;
  });
}

Result<std::pair<Apply, size_t>> read_precompiled(const JsonPlace& place) {
  INGOT_TRY(place.is_object_with({"type", "precompiled_charsmap"}));
  const JsonPlace rules = place["precompiled_charsmap"];
  INGOT_ASSIGN(const std::string base64, rules.string());
  const auto bytes = decode_base64(base64);
  if (!bytes.ok()) return rules.wrong(bytes.error().message);
  auto map = PrecompiledMap::read(*bytes);
  if (!map.ok()) return rules.wrong(map.error().message);
  return std::pair(Apply([map = *map](std::string_view text) { return map.apply(text); }),
                   growth_of(1, map->longest()));
}

}  // namespace

std::string replace_all(std::string_view text, std::string_view from, std::string_view to) {
  std::string out;
  out.reserve(text.size());
  size_t at = 0;
  for (size_t found = text.find(from); found != std::string_view::npos; found = text.find(from, at)) {
    out.append(text, at, found - at).append(to);
    at = found + from.size();
  }
  return out.append(text, at);
}

Result<std::string> read_string_pattern(const JsonPlace& pattern) {
  INGOT_TRY(pattern.is_object_with({"String", "Regex"}));
  if (!pattern["Regex"].is_null()) return pattern["Regex"].unsupported("a regex in a Replace of a decoder");
  INGOT_ASSIGN(std::string text, pattern["String"].string());
  if (text.empty()) return pattern["String"].expected("a string that is not empty");
  return text;
}

Result<Normalizer::Step> Normalizer::read_step(const std::string& type, const JsonPlace& place) {
  const auto step = [](Apply apply, size_t growth = 1) {
    return Step{[apply = std::move(apply)](std::string_view text, bool) { return apply(text); }, growth};
  };
  if (type == "Prepend") {
    INGOT_TRY(place.is_object_with({"type", "prepend"}));
    INGOT_ASSIGN(std::string prefix, place["prepend"].string());
    return step([prefix](std::string_view text) { return text.empty() ? std::string() : prefix + std::string(text); });
  }
  if (type == "Strip") {
    INGOT_TRY(place.is_object_with({"type", "strip_left", "strip_right"}));
    INGOT_ASSIGN(const bool left, place["strip_left"].boolean());
    INGOT_ASSIGN(const bool right, place["strip_right"].boolean());
    return step([=](std::string_view text) { return strip_ends(text, left, right); });
  }
  if (type == "BertNormalizer") {
    INGOT_ASSIGN(Apply apply, read_bert(place));
    return step(std::move(apply));
  }
  if (type == "Replace" || type == "Precompiled") {
    INGOT_ASSIGN(auto made, type == "Replace" ? read_replace(place) : read_precompiled(place));
    return step(std::move(made.first), made.second);
  }
  INGOT_TRY(place.is_object_with({"type"}));
  if (type == "Lowercase") return step(lower);
  if (type == "StripAccents") return step(without<is_combining_mark>);
  if (type == "Nmt") return step(nmt);
  const UnicodeForm form{type.back() == 'C', type.size() == 4};
  return step([form](std::string_view text) { return form.apply(text); });
}

Status Normalizer::add(const JsonPlace& place, int depth) {
  static constexpr std::string_view kKnown[] = {"Prepend",        "Replace",     "NFC",          "NFD",   "NFKC",
                                                "NFKD",           "Lowercase",   "StripAccents", "Strip", "Nmt",
                                                "BertNormalizer", "Precompiled", "Sequence"};
  INGOT_ASSIGN(const std::string type, place.type());
  if (std::ranges::find(kKnown, type) == std::end(kKnown)) {
    return place["type"].unsupported(
        fmt::format("the normalizer {} (known: {})", describe(type), fmt::join(kKnown, ", ")));
  }
  if (type == "Sequence") {
    INGOT_TRY(place.is_object_with({"type", "normalizers"}));
    const JsonPlace list = place["normalizers"];
    INGOT_TRY(list.is_array());
    if (depth == kMostNested) return place.unsupported("a Sequence nested this deep");
    for (size_t i = 0; i < list.value().size(); ++i) INGOT_TRY(add(list[i], depth + 1));
    return {};
  }
  INGOT_ASSIGN(Step step, read_step(type, place));
  if (step.growth > kMostGrowth / growth_)
    return place.unsupported(fmt::format("a text made more than {} times as long", kMostGrowth));
  growth_ *= step.growth;
  steps_.push_back(std::move(step));
  return {};
}

Normalizer::Normalizer(SentencePieceNormalizer sentencepiece) {
  steps_.push_back({[rules = std::make_shared<const SentencePieceNormalizer>(std::move(sentencepiece))](
                        std::string_view text, bool at_start) { return rules->apply(text, at_start); }});
}

Result<Normalizer> Normalizer::read(const JsonPlace& place) {
  Normalizer normalizer;
  if (!place.is_null()) INGOT_TRY(normalizer.add(place, 0));
  return normalizer;
}

std::string Normalizer::apply(std::string_view text, bool at_start) const {
  std::string current(text);
  for (const Step& step : steps_) current = step.apply(current, at_start);
  return current;
}

}  // namespace ingot
