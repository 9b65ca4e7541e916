#include "text/utf8.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstring>
#include <iterator>

namespace ingot {
namespace {

// The letters and numbers that Unicode 15.1 and 16 added to what utf8proc 2.8 knows (UnicodeData.txt), so that pieces
// are those of the tokenizer libraries of today.
struct LaterRange {
  char32_t first, last;
  CharClass type;
};
constexpr LaterRange kLaterRanges[] = {
    {0x1C89, 0x1C8A, CharClass::letter},   {0xA7CB, 0xA7CD, CharClass::letter},   {0xA7DA, 0xA7DC, CharClass::letter},
    {0x105C0, 0x105F3, CharClass::letter}, {0x10D40, 0x10D49, CharClass::number}, {0x10D4A, 0x10D65, CharClass::letter},
    {0x10D6F, 0x10D85, CharClass::letter}, {0x10EC2, 0x10EC4, CharClass::letter}, {0x11380, 0x11389, CharClass::letter},
    {0x1138B, 0x1138B, CharClass::letter}, {0x1138E, 0x1138E, CharClass::letter}, {0x11390, 0x113B5, CharClass::letter},
    {0x113B7, 0x113B7, CharClass::letter}, {0x113D1, 0x113D1, CharClass::letter}, {0x113D3, 0x113D3, CharClass::letter},
    {0x116D0, 0x116E3, CharClass::number}, {0x11BC0, 0x11BE0, CharClass::letter}, {0x11BF0, 0x11BF9, CharClass::number},
    {0x13460, 0x143FA, CharClass::letter}, {0x16100, 0x1611D, CharClass::letter}, {0x16130, 0x16139, CharClass::number},
    {0x16D40, 0x16D6C, CharClass::letter}, {0x16D70, 0x16D79, CharClass::number}, {0x18CFF, 0x18CFF, CharClass::letter},
    {0x1CCF0, 0x1CCF9, CharClass::number}, {0x1E5D0, 0x1E5ED, CharClass::letter}, {0x1E5F0, 0x1E5F0, CharClass::letter},
    {0x1E5F1, 0x1E5FA, CharClass::number}, {0x2EBF0, 0x2EE5D, CharClass::letter}};

CharClass classify_unassigned(char32_t code) {
  const auto* range =
      std::lower_bound(std::begin(kLaterRanges), std::end(kLaterRanges), code,
                       [](const LaterRange& candidate, char32_t value) { return candidate.last < value; });
  return range != std::end(kLaterRanges) && code >= range->first ? range->type : CharClass::other;
}

}  // namespace

Utf8Char decode_multibyte(const unsigned char* p, const unsigned char* end) {
  const auto tail = [&](int i) { return end - p > i && (p[i] & 0xC0) == 0x80; };
  const auto bits = [&](int i) { return static_cast<char32_t>(p[i] & 0x3F); };
  const unsigned char lead = p[0];
  if (lead < 0xC2) return {};
  if (lead < 0xE0) {
    if (!tail(1)) return {};
    return {static_cast<char32_t>(lead & 0x1F) << 6 | bits(1), 2};
  }
  if (lead < 0xF0) {
    if (!tail(1) || !tail(2)) return {};
    const char32_t code = static_cast<char32_t>(lead & 0x0F) << 12 | bits(1) << 6 | bits(2);
    if (code < 0x800 || (code >= 0xD800 && code <= 0xDFFF)) return {};
    return {code, 3};
  }
  if (lead > 0xF4 || !tail(1) || !tail(2) || !tail(3)) return {};
  const char32_t code = static_cast<char32_t>(lead & 0x07) << 18 | bits(1) << 12 | bits(2) << 6 | bits(3);
  if (code < 0x10000 || code > 0x10FFFF) return {};
  return {code, 4};
}

void append_utf8(char32_t code, std::string& out) {
  const auto byte = [&](char32_t value) { out.push_back(static_cast<char>(value)); };
  if (code < 0x80) return byte(code);
  if (code < 0x800) {
    byte(0xC0 | code >> 6);
  } else {
    if (code < 0x10000) {
      byte(0xE0 | code >> 12);
    } else {
      byte(0xF0 | code >> 18);
      byte(0x80 | (code >> 12 & 0x3F));
    }
    byte(0x80 | (code >> 6 & 0x3F));
  }
  byte(0x80 | (code & 0x3F));
}

size_t valid_utf8_end(std::string_view text, size_t from) {
  const auto* begin = reinterpret_cast<const unsigned char*>(text.data());
  const auto* end = begin + text.size();
  const auto* p = begin + from;
  while (p < end) {
    while (end - p >= 8) {
      uint64_t eight;
      std::memcpy(&eight, p, 8);
      if ((eight & 0x8080808080808080u) != 0) break;
      p += 8;
    }
    if (p == end) break;
    const Utf8Char c = decode_utf8(p, end);
    if (c.size == 0) break;
    p += c.size;
  }
  return static_cast<size_t>(p - begin);
}

size_t invalid_utf8_end(std::string_view text, size_t from) {
  const auto* begin = reinterpret_cast<const unsigned char*>(text.data());
  const auto* end = begin + text.size();
  const auto* p = begin + from;
  while (p < end && decode_utf8(p, end).size == 0) ++p;
  return static_cast<size_t>(p - begin);
}

size_t closed_utf8_prefix(std::string_view bytes) {
  // Only the last three bytes can belong to a character that is still open.
  const size_t first = bytes.size() > 3 ? bytes.size() - 3 : 0;
  for (size_t start = first; start < bytes.size(); ++start) {
    const auto lead = static_cast<unsigned char>(bytes[start]);
    const size_t needs = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
    const size_t has = bytes.size() - start;
    if (lead < 0xC2 || lead > 0xF4 || has >= needs) continue;
    // Whether some continuation completes it: the second byte decides (overlong forms, surrogates, range), the rest is
    // free.
    unsigned char trial[4] = {lead, 0x80, 0x80, 0x80};
    if (lead == 0xE0) trial[1] = 0xA0;
    if (lead == 0xF0) trial[1] = 0x90;
    for (size_t i = 1; i < has; ++i) trial[i] = static_cast<unsigned char>(bytes[start + i]);
    if (decode_multibyte(trial, trial + needs).size != 0) return start;
  }
  return bytes.size();
}

CharClass classify(char32_t code) {
  if (code < 0x80) return kAsciiClasses[code];
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(code))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
      return CharClass::letter;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO:
      return CharClass::number;
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
      return CharClass::space;
    case UTF8PROC_CATEGORY_CN:
      return classify_unassigned(code);
    default:
      return code == 0x85 ? CharClass::space : CharClass::other;
  }
}

bool is_word_char(char32_t code) {
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(code))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_PC:
      return true;
    case UTF8PROC_CATEGORY_CN:  // the later numbers are all decimal digits
      return classify_unassigned(code) != CharClass::other;
    default:
      return false;
  }
}

ClassifiedChar classify_multibyte(const unsigned char* p, const unsigned char* end) {
  const Utf8Char c = decode_multibyte(p, end);
  if (c.size == 0) return {CharClass::invalid, 1};
  return {classify(c.code), c.size};
}

}  // namespace ingot
