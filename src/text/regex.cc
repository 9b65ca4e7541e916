#include "text/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <new>

#include "text/unicode_later.h"
#include "text/utf8.h"

namespace ingot {
namespace {

constexpr std::string_view kWhiteSpace =
    R"(\t-\r\x{20}\x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000})";

// A general category at `at`, after the backslash (p{L}, P{Lu}, pL): its name; empty for anything else.
std::string_view category_at(std::string_view pattern, size_t at) {
  std::string_view rest = pattern.substr(at + 1);
  if (!rest.starts_with('{')) return rest.substr(0, 1);
  rest.remove_prefix(1);
  const size_t end = rest.find('}');
  return end == 1 || end == 2 ? rest.substr(0, end) : std::string_view();
}

// Writes \s and \S out as White_Space, and adds to general categories the characters that PCRE2 does not know yet (but
// not to a \P inside a class, which has no such form). \S inside a class has no such form and stays PCRE2's (which
// differs in U+180E alone). Oniguruma's classes nest and intersect, PCRE2's do not: those are refused rather than
// misread.
Result<std::string> translate(std::string_view pattern) {
  std::string out;
  bool in_class = false;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (c == '\\' && i + 1 < pattern.size()) {
      const char escaped = pattern[++i];
      if (escaped == 's') {
        out += in_class ? std::string(kWhiteSpace) : fmt::format("[{}]", kWhiteSpace);
      } else if (escaped == 'S' && !in_class) {
        out += fmt::format("[^{}]", kWhiteSpace);
      } else if (escaped == 'p' || (escaped == 'P' && !in_class)) {
        const std::string_view category = category_at(pattern, i);
        const std::string later = later_characters(category);
        if (later.empty()) {
          out += {c, escaped};
          continue;
        }
        out += in_class ? "" : escaped == 'p' ? "[" : "[^";
        out += fmt::format("\\p{{{}}}{}{}", category, later, in_class ? "" : "]");
        i += pattern[i + 1] == '{' ? category.size() + 2 : 1;
      } else {
        out += {c, escaped};
      }
      continue;
    }
    if (in_class && pattern.substr(i, 2) == "[:") {
      const size_t end = pattern.find(":]", i);
      if (end == std::string_view::npos) return input_error("the regex '{}' has no ':]' for its '[:'", pattern);
      out += pattern.substr(i, end + 2 - i);
      i = end + 1;
      continue;
    }
    if (in_class && (c == '[' || pattern.substr(i, 2) == "&&")) {
      return input_error("the regex '{}' has a class inside a class at byte {}; not supported: write it as one class",
                         pattern, i);
    }
    if (c == '[') in_class = true;
    if (c == ']') in_class = false;
    out += c;
  }
  return out;
}

struct MatchData {
  explicit MatchData(const pcre2_code* code) : data(pcre2_match_data_create_from_pattern(code, nullptr)) {
    if (data == nullptr) throw std::bad_alloc();
  }
  MatchData(const MatchData&) = delete;
  MatchData& operator=(const MatchData&) = delete;
  ~MatchData() { pcre2_match_data_free(data); }
  pcre2_match_data* data;
};

}  // namespace

struct Regex::Code {
  explicit Code(pcre2_code* compiled) : code(compiled) {}
  Code(const Code&) = delete;
  Code& operator=(const Code&) = delete;
  ~Code() { pcre2_code_free(code); }
  pcre2_code* code;
};

Result<Regex> Regex::compile(std::string_view pattern) {
  INGOT_ASSIGN(const std::string translated, translate(pattern));
  int error = 0;
  PCRE2_SIZE offset = 0;
  pcre2_code* code =
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(),
                    PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C, &error, &offset, nullptr);
  if (code == nullptr) {
    PCRE2_UCHAR message[256] = {};
    pcre2_get_error_message(error, message, sizeof(message));
    return input_error("the regex '{}' does not compile: {} at byte {} of its form '{}'", pattern,
                       reinterpret_cast<const char*>(message), offset, translated);
  }
  // Without JIT (a hardened system that forbids executable memory) PCRE2 interprets: slower, the same matches.
  (void)pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);
  Regex regex;
  regex.code_ = std::make_shared<const Code>(code);
  return regex;
}

void Regex::find_all(std::string_view text, FunctionRef<void(size_t begin, size_t end)> on_match) const {
  const MatchData match(code_->code);
  const PCRE2_SIZE* edges = pcre2_get_ovector_pointer(match.data);
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = valid_utf8_end(text, begin);
    // The stretch is checked above, and checking again at every match would make long texts quadratic.
    const auto* subject = reinterpret_cast<PCRE2_SPTR>(text.data() + begin);
    const size_t size = end - begin;
    const auto run = [&](size_t from, uint32_t flags) {
      return pcre2_match(code_->code, subject, size, from, PCRE2_NO_UTF_CHECK | flags, match.data, nullptr);
    };
    for (size_t at = 0; at < size;) {
      int found = run(at, 0);
      if (found == PCRE2_ERROR_JIT_STACKLIMIT) found = run(at, PCRE2_NO_JIT);  // the interpreter's stack is the heap
      if (found < 0) break;
      // \K in a lookahead can put the start after the end; such a match counts as empty.
      const size_t from = std::min(edges[0], edges[1]);
      on_match(begin + from, begin + edges[1]);
      at = edges[1];
      if (from == at && at < size) {
        at += decode_utf8(subject + at, subject + size).size;
      }
    }
    begin = invalid_utf8_end(text, end);
  }
}

}  // namespace ingot
