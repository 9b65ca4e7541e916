#include "text/normalizer.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <new>

#include "text/json_reader.h"
#include "text/overloaded.h"
#include "text/utf8.h"

namespace ingot {
namespace {

constexpr int kMostNested = 16;

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
  if (!pattern["Regex"].is_null()) return pattern["Regex"].unsupported("a regex in a Replace");
  INGOT_ASSIGN(std::string text, pattern["String"].string());
  if (text.empty()) return pattern["String"].expected("a string that is not empty");
  return text;
}

std::string Normalizer::UnicodeForm::apply(std::string_view text) const {
  const auto is_ascii = [](char c) { return static_cast<unsigned char>(c) < 0x80; };
  if (std::all_of(text.begin(), text.end(), is_ascii)) return std::string(text);
  int options = UTF8PROC_STABLE | (compose ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE);
  if (compatible) options |= UTF8PROC_COMPAT;
  std::string out;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = valid_utf8_end(text, begin);
    if (end > begin) {
      utf8proc_uint8_t* mapped = nullptr;
      const auto size =
          utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data() + begin),
                       static_cast<utf8proc_ssize_t>(end - begin), &mapped, static_cast<utf8proc_option_t>(options));
      if (size < 0) throw std::bad_alloc();  // of valid UTF-8 it is the only error left
      out.append(reinterpret_cast<const char*>(mapped), static_cast<size_t>(size));
      std::free(mapped);
    }
    begin = invalid_utf8_end(text, end);
    out.append(text, end, begin - end);
  }
  return out;
}

Status Normalizer::add(const JsonPlace& place, int depth) {
  INGOT_ASSIGN(const std::string type, place.type());
  if (type == "Sequence") {
    INGOT_TRY(place.is_object_with({"type", "normalizers"}));
    const JsonPlace list = place["normalizers"];
    INGOT_TRY(list.is_array());
    if (depth == kMostNested) return place.unsupported("a Sequence nested this deep");
    for (size_t i = 0; i < list.value().size(); ++i) INGOT_TRY(add(list[i], depth + 1));
    return {};
  }
  if (type == "Prepend") {
    INGOT_TRY(place.is_object_with({"type", "prepend"}));
    INGOT_ASSIGN(std::string text, place["prepend"].string());
    steps_.emplace_back(Prepend{std::move(text)});
    return {};
  }
  if (type == "Replace") {
    INGOT_TRY(place.is_object_with({"type", "pattern", "content"}));
    INGOT_ASSIGN(std::string from, read_string_pattern(place["pattern"]));
    INGOT_ASSIGN(std::string to, place["content"].string());
    steps_.emplace_back(Replace{std::move(from), std::move(to)});
    return {};
  }
  if (type == "NFC" || type == "NFD" || type == "NFKC" || type == "NFKD") {
    INGOT_TRY(place.is_object_with({"type"}));
    steps_.emplace_back(UnicodeForm{type.back() == 'C', type.size() == 4});
    return {};
  }
  return place["type"].unsupported(
      fmt::format("the normalizer {} (known: Prepend, Replace, NFC, NFD, NFKC, NFKD, Sequence)", describe(type)));
}

Result<Normalizer> Normalizer::read(const JsonPlace& place) {
  Normalizer normalizer;
  if (!place.is_null()) INGOT_TRY(normalizer.add(place, 0));
  return normalizer;
}

std::string Normalizer::apply(std::string_view text) const {
  std::string current(text);
  for (const auto& step : steps_) {
    current = std::visit(
        Overloaded{[&](const Prepend& prepend) { return current.empty() ? current : prepend.text + current; },
                   [&](const Replace& replace) { return replace_all(current, replace.from, replace.to); },
                   [&](const UnicodeForm& form) { return form.apply(current); }},
        step);
  }
  return current;
}

}  // namespace ingot
