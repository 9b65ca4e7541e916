#include "data/jsonl.h"

#include <cstdint>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "text/utf8.h"

namespace ingot {
namespace {

// U+10FE80 + (byte - 0x80), the private-use characters F4 8F BA 80 … F4 8F BB BF, stand for the stray bytes 80 … FF.
constexpr std::string_view kStandInLead = "\xF4\x8F";

uint8_t byte_at(std::string_view text, size_t at) {
  return at < text.size() ? static_cast<uint8_t>(text[at]) : 0;
}
std::string with_stand_ins(std::string_view text) {
  std::string out;
  out.reserve(text.size() + 64);
  for (size_t at = 0; at < text.size();) {
    const size_t stray = valid_utf8_end(text, at);
    out.append(text.substr(at, stray - at));
    at = stray;
    if (at == text.size()) break;
    const uint8_t byte = byte_at(text, at++);
    out += kStandInLead;
    out.push_back(static_cast<char>(byte < 0xC0 ? 0xBA : 0xBB));
    out.push_back(static_cast<char>(0x80 | (byte & 0x3F)));
  }
  return out;
}

// Whether the text itself holds a character that would be taken for a stand-in, as such or as an escape.
bool holds_stand_ins(std::string_view text) {
  for (std::string_view sign : {"\xF4\x8F\xBA", "\xF4\x8F\xBB", "\\uDBFF", "\\udbff", "\\uDbff"})
    if (text.find(sign) != std::string_view::npos) return true;
  return false;
}

// nlohmann's message without its own name and with no line, which would be that within the row.
std::string_view parser_message(std::string_view what) {
  const size_t colon = what.find(": ");
  return colon == std::string_view::npos ? what : what.substr(colon + 2);
}

}  // namespace

JsonLine::JsonLine() = default;
JsonLine::JsonLine(JsonLine&&) noexcept = default;
JsonLine& JsonLine::operator=(JsonLine&&) noexcept = default;
JsonLine::~JsonLine() = default;

Result<JsonLine> JsonLine::parse(std::string_view text, const TextPlace& place) {
  if (nests_too_deep(text))
    return input_error("{}: JSON nested deeper than {} levels", place.to_string(), kMostJsonLevels);
  JsonLine line;
  line.has_stray_bytes_ = valid_utf8_end(text, 0) != text.size();
  if (line.has_stray_bytes_ && holds_stand_ins(text))
    return input_error(
        "{}: bytes that are not UTF-8 beside characters from U+10FE80 to U+10FEFF; one or the other must go",
        place.to_string());
  try {
    line.value_ = std::make_unique<nlohmann::json>(line.has_stray_bytes_ ? nlohmann::json::parse(with_stand_ins(text))
                                                                         : nlohmann::json::parse(text));
  } catch (const nlohmann::json::exception& problem) {
    return input_error("{}: not one JSON value: {}; expected one JSON object a line", place.to_string(),
                       parser_message(problem.what()));
  }
  return line;
}

void JsonLine::restore_bytes(std::string& text) const {
  if (!has_stray_bytes_) return;
  size_t to = 0;
  for (size_t at = 0; at < text.size();) {
    const uint8_t third = byte_at(text, at + 2);
    const bool stand_in = text.compare(at, 2, kStandInLead) == 0 && (third == 0xBA || third == 0xBB);
    if (stand_in) {
      text[to++] = static_cast<char>((third == 0xBA ? 0x80 : 0xC0) | (byte_at(text, at + 3) & 0x3F));
      at += 4;
    } else {
      text[to++] = text[at++];
    }
  }
  text.resize(to);
}

}  // namespace ingot
