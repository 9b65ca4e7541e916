#include "text/gpt_scanner.h"

#include <algorithm>

#include "text/utf8.h"

namespace ingot {

const std::string_view kGpt2Pattern = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

namespace {

using Byte = unsigned char;

// The end of the run of characters of one class that starts at p.
inline const Byte* run_end(const Byte* p, const Byte* end, CharClass type) {
  while (p < end) {
    if (*p < 0x80) {
      if (kAsciiClasses[*p] != type) return p;
      ++p;
    } else {
      const ClassifiedChar c = classify_multibyte(p, end);
      if (c.type != type) return p;
      p += c.size;
    }
  }
  return p;
}

// The end of 's, 't, 're, 've, 'm, 'll or 'd at p, or p.
inline const Byte* contraction_end(const Byte* p, const Byte* end) {
  if (end - p < 2) return p;
  switch (p[1]) {
    case 's':
    case 't':
    case 'm':
    case 'd':
      return p + 2;
    case 'r':
    case 'v':
      return end - p >= 3 && p[2] == 'e' ? p + 3 : p;
    case 'l':
      return end - p >= 3 && p[2] == 'l' ? p + 3 : p;
    default:
      return p;
  }
}

// The same in any case. U+017F folds to s.
inline const Byte* caseless_contraction_end(const Byte* p, const Byte* end) {
  if (end - p < 2) return p;
  if (end - p >= 3 && p[1] == 0xC5 && p[2] == 0xBF) return p + 3;
  const auto lower = [](Byte b) { return b >= 'A' && b <= 'Z' ? static_cast<Byte>(b + 32) : b; };
  const Byte text[3] = {'\'', lower(p[1]), end - p >= 3 ? lower(p[2]) : Byte{0}};
  return p + (contraction_end(text, text + std::min<ptrdiff_t>(3, end - p)) - text);
}

// \s+(?!\S)|\s+ on the run of spaces [p, run): all of it at the end of the text, else all but the last character, which
// belongs to what follows or, alone, is a piece.
inline const Byte* space_piece_end(const Byte* p, const Byte* run, const Byte* end) {
  if (run == end || classify_at(run, end).type == CharClass::invalid) return run;
  const Byte* last = run - 1;
  while ((*last & 0xC0) == 0x80) --last;
  return last == p ? run : last;
}

const Byte* gpt2_piece_end(const Byte* p, const Byte* end) {
  if (*p == '\'') {
    if (const Byte* contraction = contraction_end(p, end); contraction != p) return contraction;
  }
  const Byte* start = p;
  if (*p == ' ' && p + 1 < end) ++p;
  const ClassifiedChar c = classify_at(p, end);
  if (c.type == CharClass::letter || c.type == CharClass::number || c.type == CharClass::other) {
    return run_end(p + c.size, end, c.type);
  }
  return space_piece_end(start, run_end(start, end, CharClass::space), end);
}

inline bool is_line_end(Byte b) {
  return b == '\r' || b == '\n';
}

const Byte* cl100k_piece_end(const Byte* p, const Byte* end, int max_digits) {
  if (*p == '\'') {
    if (const Byte* contraction = caseless_contraction_end(p, end); contraction != p) return contraction;
  }
  const ClassifiedChar c = classify_at(p, end);
  const Byte* after = p + c.size;
  if (c.type == CharClass::letter) return run_end(after, end, CharClass::letter);
  if (c.type == CharClass::number) {
    for (int digits = 1; digits < max_digits && after < end; ++digits) {
      const ClassifiedChar next = classify_at(after, end);
      if (next.type != CharClass::number) break;
      after += next.size;
    }
    return after;
  }
  const ClassifiedChar next = after < end ? classify_at(after, end) : ClassifiedChar{CharClass::invalid, 0};
  if (next.type == CharClass::letter && !is_line_end(*p)) return run_end(after + next.size, end, CharClass::letter);
  if (c.type == CharClass::other || (*p == ' ' && next.type == CharClass::other)) {
    const Byte* run = run_end(after, end, CharClass::other);
    while (run < end && is_line_end(*run)) ++run;
    return run;
  }
  const Byte* run = run_end(after, end, CharClass::space);
  for (const Byte* last = run; last > p; --last) {  // \s*[\r\n]+ reaches to the last line end of the run
    if (is_line_end(last[-1])) return last;
  }
  return space_piece_end(p, run, end);
}

template <class PieceEnd>
void scan(std::string_view text, FunctionRef<void(std::string_view)> emit, PieceEnd piece_end) {
  const auto* p = reinterpret_cast<const Byte*>(text.data());
  const auto* end = p + text.size();
  while (p < end) {
    const Byte* start = p;
    if (*p >= 0x80 && decode_multibyte(p, end).size == 0) {
      while (p < end && decode_utf8(p, end).size == 0) ++p;
    } else {
      p = piece_end(p, end);
    }
    emit({reinterpret_cast<const char*>(start), static_cast<size_t>(p - start)});
  }
}

}  // namespace

std::optional<GptScanner> GptScanner::for_pattern(std::string_view pattern) {
  if (pattern == kGpt2Pattern) return GptScanner(Style::gpt2, 0);
  constexpr std::string_view kHead = R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|)";
  constexpr std::string_view kTail = R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
  if (!pattern.starts_with(kHead) || !pattern.ends_with(kTail) || pattern.size() < kHead.size() + kTail.size())
    return std::nullopt;
  const std::string_view digits = pattern.substr(kHead.size(), pattern.size() - kHead.size() - kTail.size());
  if (digits == R"(\p{N}{1,3})") return GptScanner(Style::cl100k, 3);
  if (digits == R"(\p{N})") return GptScanner(Style::cl100k, 1);
  return std::nullopt;
}

void GptScanner::split(std::string_view text, FunctionRef<void(std::string_view piece)> emit) const {
  if (style_ == Style::gpt2) return scan(text, emit, gpt2_piece_end);
  scan(text, emit, [digits = max_digits_](const Byte* p, const Byte* end) { return cl100k_piece_end(p, end, digits); });
}

}  // namespace ingot
