#include "text/char_properties.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <new>

#include "text/utf8.h"

namespace ingot {
namespace {

struct CodeRange {
  char32_t first, last;
};

// Marks that Unicode 9 does not know as such.
constexpr CodeRange kMarksSince9[] = {
    {0x7FD, 0x7FD},     {0x898, 0x89F},     {0x8CA, 0x8D3},     {0x9FE, 0x9FE},     {0xAFA, 0xAFF},
    {0xB55, 0xB55},     {0xC04, 0xC04},     {0xC3C, 0xC3C},     {0xCF3, 0xCF3},     {0xD00, 0xD00},
    {0xD3B, 0xD3C},     {0xD81, 0xD81},     {0xEBA, 0xEBA},     {0xECE, 0xECE},     {0x1715, 0x1715},
    {0x180F, 0x180F},   {0x1ABF, 0x1ACE},   {0x1CF7, 0x1CF7},   {0x1DF6, 0x1DFA},   {0xA82C, 0xA82C},
    {0xA8FF, 0xA8FF},   {0x10D24, 0x10D27}, {0x10EAB, 0x10EAC}, {0x10EFD, 0x10EFF}, {0x10F46, 0x10F50},
    {0x10F82, 0x10F85}, {0x11070, 0x11070}, {0x11073, 0x11074}, {0x110C2, 0x110C2}, {0x11145, 0x11146},
    {0x111C9, 0x111C9}, {0x111CE, 0x111CF}, {0x11241, 0x11241}, {0x1133B, 0x1133B}, {0x1145E, 0x1145E},
    {0x1182C, 0x1183A}, {0x11930, 0x11935}, {0x11937, 0x11938}, {0x1193B, 0x1193E}, {0x11940, 0x11940},
    {0x11942, 0x11943}, {0x119D1, 0x119D7}, {0x119DA, 0x119E0}, {0x119E4, 0x119E4}, {0x11A01, 0x11A0A},
    {0x11A33, 0x11A39}, {0x11A3B, 0x11A3E}, {0x11A47, 0x11A47}, {0x11A51, 0x11A5B}, {0x11A8A, 0x11A99},
    {0x11D31, 0x11D36}, {0x11D3A, 0x11D3A}, {0x11D3C, 0x11D3D}, {0x11D3F, 0x11D45}, {0x11D47, 0x11D47},
    {0x11D8A, 0x11D8E}, {0x11D90, 0x11D91}, {0x11D93, 0x11D97}, {0x11EF3, 0x11EF6}, {0x11F00, 0x11F01},
    {0x11F03, 0x11F03}, {0x11F34, 0x11F3A}, {0x11F3E, 0x11F42}, {0x13440, 0x13440}, {0x13447, 0x13455},
    {0x16F4F, 0x16F4F}, {0x16F7F, 0x16F87}, {0x16FE4, 0x16FE4}, {0x16FF0, 0x16FF1}, {0x1CF00, 0x1CF2D},
    {0x1CF30, 0x1CF46}, {0x1E08F, 0x1E08F}, {0x1E130, 0x1E136}, {0x1E2AE, 0x1E2AE}, {0x1E2EC, 0x1E2EF},
    {0x1E4EC, 0x1E4EF}};
// Decompositions that Unicode 9 does not know.
constexpr CodeRange kDecompositionsSince9[] = {{0x32FF, 0x32FF},   {0xA7F2, 0xA7F4},   {0xAB69, 0xAB69},
                                               {0x10781, 0x10785}, {0x10787, 0x107B0}, {0x107B2, 0x107BA},
                                               {0x1E030, 0x1E06D}, {0x1F16C, 0x1F16C}, {0x1FBF0, 0x1FBF9}};
// Nonspacing marks that Unicode 8 does not know as such.
constexpr CodeRange kNonspacingSince8[] = {
    {0x7FD, 0x7FD},     {0x898, 0x89F},     {0x8CA, 0x8E1},     {0x9FE, 0x9FE},     {0xAFA, 0xAFF},
    {0xB55, 0xB55},     {0xC04, 0xC04},     {0xC3C, 0xC3C},     {0xD00, 0xD00},     {0xD3B, 0xD3C},
    {0xD81, 0xD81},     {0xEBA, 0xEBA},     {0xECE, 0xECE},     {0x180F, 0x180F},   {0x1885, 0x1886},
    {0x1ABF, 0x1ACE},   {0x1DF6, 0x1DFB},   {0xA82C, 0xA82C},   {0xA8C5, 0xA8C5},   {0xA8FF, 0xA8FF},
    {0xA9BD, 0xA9BD},   {0x10D24, 0x10D27}, {0x10EAB, 0x10EAC}, {0x10EFD, 0x10EFF}, {0x10F46, 0x10F50},
    {0x10F82, 0x10F85}, {0x11070, 0x11070}, {0x11073, 0x11074}, {0x110C2, 0x110C2}, {0x111C9, 0x111C9},
    {0x111CF, 0x111CF}, {0x1123E, 0x1123E}, {0x11241, 0x11241}, {0x1133B, 0x1133B}, {0x11438, 0x1143F},
    {0x11442, 0x11444}, {0x11446, 0x11446}, {0x1145E, 0x1145E}, {0x1182F, 0x11837}, {0x11839, 0x1183A},
    {0x1193B, 0x1193C}, {0x1193E, 0x1193E}, {0x11943, 0x11943}, {0x119D4, 0x119D7}, {0x119DA, 0x119DB},
    {0x119E0, 0x119E0}, {0x11A01, 0x11A0A}, {0x11A33, 0x11A38}, {0x11A3B, 0x11A3E}, {0x11A47, 0x11A47},
    {0x11A51, 0x11A56}, {0x11A59, 0x11A5B}, {0x11A8A, 0x11A96}, {0x11A98, 0x11A99}, {0x11C30, 0x11C36},
    {0x11C38, 0x11C3D}, {0x11C3F, 0x11C3F}, {0x11C92, 0x11CA7}, {0x11CAA, 0x11CB0}, {0x11CB2, 0x11CB3},
    {0x11CB5, 0x11CB6}, {0x11D31, 0x11D36}, {0x11D3A, 0x11D3A}, {0x11D3C, 0x11D3D}, {0x11D3F, 0x11D45},
    {0x11D47, 0x11D47}, {0x11D90, 0x11D91}, {0x11D95, 0x11D95}, {0x11D97, 0x11D97}, {0x11EF3, 0x11EF4},
    {0x11F00, 0x11F01}, {0x11F36, 0x11F3A}, {0x11F40, 0x11F40}, {0x11F42, 0x11F42}, {0x13440, 0x13440},
    {0x13447, 0x13455}, {0x16F4F, 0x16F4F}, {0x16FE4, 0x16FE4}, {0x1CF00, 0x1CF2D}, {0x1CF30, 0x1CF46},
    {0x1E000, 0x1E006}, {0x1E008, 0x1E018}, {0x1E01B, 0x1E021}, {0x1E023, 0x1E024}, {0x1E026, 0x1E02A},
    {0x1E08F, 0x1E08F}, {0x1E130, 0x1E136}, {0x1E2AE, 0x1E2AE}, {0x1E2EC, 0x1E2EF}, {0x1E4EC, 0x1E4EF},
    {0x1E944, 0x1E94A}};
// Punctuation that Unicode 8 does not know as such.
constexpr CodeRange kPunctuationSince8[] = {
    {0x61D, 0x61D},     {0x9FD, 0x9FD},     {0xA76, 0xA76},     {0xC77, 0xC77},     {0xC84, 0xC84},
    {0x1B7D, 0x1B7E},   {0x2E43, 0x2E4F},   {0x2E52, 0x2E5D},   {0x10EAD, 0x10EAD}, {0x10F55, 0x10F59},
    {0x10F86, 0x10F89}, {0x1144B, 0x1144F}, {0x1145A, 0x1145B}, {0x1145D, 0x1145D}, {0x11660, 0x1166C},
    {0x116B9, 0x116B9}, {0x1183B, 0x1183B}, {0x11944, 0x11946}, {0x119E2, 0x119E2}, {0x11A3F, 0x11A46},
    {0x11A9A, 0x11A9C}, {0x11A9E, 0x11AA2}, {0x11B00, 0x11B09}, {0x11C41, 0x11C45}, {0x11C70, 0x11C71},
    {0x11EF7, 0x11EF8}, {0x11F43, 0x11F4F}, {0x11FFF, 0x11FFF}, {0x12FF1, 0x12FF2}, {0x16E97, 0x16E9A},
    {0x16FE2, 0x16FE2}, {0x1E95E, 0x1E95F}};
// Alphabetic symbols, and letters, marks and digits of Unicode 15.1 and 16.
constexpr CodeRange kMoreWord[] = {{0x897, 0x897},     {0x1C89, 0x1C8A},   {0x24B6, 0x24E9},   {0xA7CB, 0xA7CD},
                                   {0xA7DA, 0xA7DC},   {0x105C0, 0x105F3}, {0x10D40, 0x10D65}, {0x10D69, 0x10D6D},
                                   {0x10D6F, 0x10D85}, {0x10EC2, 0x10EC4}, {0x10EFC, 0x10EFC}, {0x11380, 0x11389},
                                   {0x1138B, 0x1138B}, {0x1138E, 0x1138E}, {0x11390, 0x113B5}, {0x113B7, 0x113C0},
                                   {0x113C2, 0x113C2}, {0x113C5, 0x113C5}, {0x113C7, 0x113CA}, {0x113CC, 0x113D3},
                                   {0x113E1, 0x113E2}, {0x116D0, 0x116E3}, {0x11BC0, 0x11BE0}, {0x11BF0, 0x11BF9},
                                   {0x11F5A, 0x11F5A}, {0x13460, 0x143FA}, {0x16100, 0x16139}, {0x16D40, 0x16D6C},
                                   {0x16D70, 0x16D79}, {0x18CFF, 0x18CFF}, {0x1CCF0, 0x1CCF9}, {0x1E5D0, 0x1E5FA},
                                   {0x1F130, 0x1F149}, {0x1F150, 0x1F169}, {0x1F170, 0x1F189}, {0x2EBF0, 0x2EE5D}};

// Upper-case letters since Unicode 15: each lies `distance` before its lower-case form.
struct LowerRange {
  char32_t first, last;
  int32_t distance;
};
constexpr LowerRange kLowerSince15[] = {{0x1C89, 0x1C89, 1},      {0xA7CB, 0xA7CB, 0x264 - 0xA7CB},
                                        {0xA7CC, 0xA7CC, 1},      {0xA7CE, 0xA7CE, 1},
                                        {0xA7D2, 0xA7D2, 1},      {0xA7D4, 0xA7D4, 1},
                                        {0xA7DA, 0xA7DA, 1},      {0xA7DC, 0xA7DC, 0x19B - 0xA7DC},
                                        {0x10D50, 0x10D65, 0x20}, {0x16EA0, 0x16EB8, 0x1B}};

template <size_t N, class Range>
const Range* find_range(const Range (&ranges)[N], char32_t code) {
  const Range* found = std::lower_bound(std::begin(ranges), std::end(ranges), code,
                                        [](const Range& range, char32_t value) { return range.last < value; });
  return found != std::end(ranges) && code >= found->first ? found : nullptr;
}

utf8proc_category_t category(char32_t code) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(code));
}

bool is_mark(utf8proc_category_t kind) {
  return kind >= UTF8PROC_CATEGORY_MN && kind <= UTF8PROC_CATEGORY_ME;
}

// Whether the normal forms leave the character alone, as a starter, because their tables are older than it.
bool is_inert(char32_t code) {
  // Nearly all text ends here.
  if (code < 0x7FD || (code > 0x32FF && code < 0xA7F2) || (code > 0xAB69 && code < 0x10781)) return false;
  return find_range(kMarksSince9, code) != nullptr || find_range(kDecompositionsSince9, code) != nullptr;
}

// The end of the stretch from `begin` that has no inert character.
size_t end_before_inert(std::string_view text, size_t begin) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
  while (begin < text.size()) {
    const Utf8Char c = decode_utf8(bytes + begin, bytes + text.size());
    if (is_inert(c.code)) return begin;
    begin += c.size;
  }
  return begin;
}

// Whether the form keeps the character whatever follows it but a mark, and whatever comes before it: a starter without
// a decomposition that is no second part of a composition. Nearly all text is of such characters; to say no is always
// right.
bool is_kept(char32_t code, UnicodeForm form) {
  if (code < 0x80) return true;
  if (!form.compose || form.compatible) return false;
  return code < 0x300 || (code >= 0x2010 && code <= 0x2027) || (code >= 0x3001 && code <= 0x3029) ||
         (code >= 0x4E00 && code <= 0x9FFF) || (code >= 0xFF01 && code <= 0xFF60);
}

// `text` is valid UTF-8.
void append_mapped(std::string_view text, int options, std::string& out) {
  if (text.empty()) return;
  utf8proc_uint8_t* mapped = nullptr;
  const auto size =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()), static_cast<utf8proc_ssize_t>(text.size()),
                   &mapped, static_cast<utf8proc_option_t>(options));
  if (size < 0) throw std::bad_alloc();  // of valid UTF-8 it is the only error left
  out.append(reinterpret_cast<const char*>(mapped), static_cast<size_t>(size));
  std::free(mapped);
}

// The same, with runs of characters that are kept copied but for the last of each, which a mark behind it may change.
void append_normal_form(std::string_view text, UnicodeForm form, int options, std::string& out) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
  size_t done = 0, last = 0;  // out has the text before done; last: the last character that is kept
  bool in_run = true;
  for (size_t at = 0; at < text.size();) {
    const Utf8Char c = decode_utf8(bytes + at, bytes + text.size());
    const bool kept = is_kept(c.code, form);
    if (kept && !in_run) append_mapped(text.substr(done, at - done), options, out);
    if (!kept && in_run) out.append(text, done, last - done);
    if (kept != in_run) done = kept ? at : last;
    if (kept) last = at;
    in_run = kept;
    at += c.size;
  }
  if (in_run) {
    out.append(text, done);
  } else {
    append_mapped(text.substr(done), options, out);
  }
}

}  // namespace

bool is_white_space(char32_t code) {
  return classify(code) == CharClass::space;
}

bool is_numeric(char32_t code) {
  return classify(code) == CharClass::number || (code >= 0x11DE0 && code <= 0x11DE9) ||
         (code >= 0x16FF4 && code <= 0x16FF6);  // Unicode 17
}

bool is_punctuation(char32_t code) {
  if (code < 0x80) return (code > ' ' && code < 0x7F) && kAsciiClasses[code] == CharClass::other;
  const auto kind = category(code);
  if (kind >= UTF8PROC_CATEGORY_PC && kind <= UTF8PROC_CATEGORY_PO)
    return find_range(kPunctuationSince8, code) == nullptr;
  return code == 0x166D || code == 0x111C9;  // were punctuation in Unicode 8
}

bool is_nonspacing_mark(char32_t code) {
  if (category(code) == UTF8PROC_CATEGORY_MN) return find_range(kNonspacingSince8, code) == nullptr;
  return code == 0x1734;  // a nonspacing mark in Unicode 8
}

bool is_combining_mark(char32_t code) {
  if (is_mark(category(code))) return find_range(kMarksSince9, code) == nullptr;
  return code == 0x1CF2 || code == 0x1CF3;  // marks in Unicode 9
}

bool is_cjk_ideograph(char32_t code) {
  constexpr CodeRange kBlocks[] = {{0x3400, 0x4DBF},   {0x4E00, 0x9FFF},   {0xF900, 0xFAFF},   {0x20000, 0x2A6DF},
                                   {0x2A700, 0x2B73F}, {0x2B740, 0x2B81F}, {0x2B920, 0x2CEAF}, {0x2F800, 0x2FA1F}};
  return find_range(kBlocks, code) != nullptr;
}

bool is_whitespace_word(char32_t code) {
  const auto kind = category(code);
  if ((kind >= UTF8PROC_CATEGORY_LU && kind <= UTF8PROC_CATEGORY_LO) || is_mark(kind) || kind == UTF8PROC_CATEGORY_ND ||
      kind == UTF8PROC_CATEGORY_NL || kind == UTF8PROC_CATEGORY_PC) {
    return true;
  }
  return code == 0x200C || code == 0x200D || find_range(kMoreWord, code) != nullptr;
}

bool is_removed_control(char32_t code) {
  if (code == '\t' || code == '\n' || code == '\r') return false;
  if (code == 0 || code == 0xFFFD) return true;
  const auto kind = category(code);
  if (kind == UTF8PROC_CATEGORY_CF) {  // but not those that Unicode 8 does not know as such
    return code != 0x890 && code != 0x891 && code != 0x8E2 && code != 0x110CD && !(code >= 0x13430 && code <= 0x1343F);
  }
  return kind == UTF8PROC_CATEGORY_CC || kind == UTF8PROC_CATEGORY_CO;
}

void append_lower(char32_t code, std::string& out) {
  if (code == 0x130) {  // the one character whose lower case is two
    out += "i\xCC\x87";
  } else if (const LowerRange* range = find_range(kLowerSince15, code)) {
    append_utf8(static_cast<char32_t>(static_cast<int32_t>(code) + range->distance), out);
  } else {
    append_utf8(static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(code))), out);
  }
}

std::string UnicodeForm::apply(std::string_view text) const {
  const auto is_ascii = [](char c) { return static_cast<unsigned char>(c) < 0x80; };
  if (std::all_of(text.begin(), text.end(), is_ascii)) return std::string(text);
  int options = UTF8PROC_STABLE | (compose ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE);
  if (compatible) options |= UTF8PROC_COMPAT;
  std::string out;
  out.reserve(text.size());
  for (size_t begin = 0; begin < text.size();) {
    const std::string_view valid = text.substr(0, valid_utf8_end(text, begin));
    while (begin < valid.size()) {
      const size_t end = end_before_inert(valid, begin);
      append_normal_form(valid.substr(begin, end - begin), *this, options, out);
      begin = end;
      if (begin == valid.size()) break;
      const auto* at = reinterpret_cast<const unsigned char*>(valid.data()) + begin;
      const size_t size = decode_utf8(at, at + (valid.size() - begin)).size;
      out.append(valid, begin, size);
      begin += size;
    }
    const size_t end = invalid_utf8_end(text, begin);
    out.append(text, begin, end - begin);
    begin = end;
  }
  return out;
}

}  // namespace ingot
