// UTF-8 one character at a time, over bytes that need not be valid, and the character classes that pre-tokenisers ask
// for. Valid is what RFC 3629 says: no overlong forms, no surrogates, nothing above U+10FFFF.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace ingot {

struct Utf8Char {
  char32_t code = 0;
  uint8_t size = 0;  // bytes; 0: the first byte does not begin a valid character
};

Utf8Char decode_multibyte(const unsigned char* p, const unsigned char* end);  // *p >= 0x80

// The character at p < end.
inline Utf8Char decode_utf8(const unsigned char* p, const unsigned char* end) {
  if (*p < 0x80) return {*p, 1};
  return decode_multibyte(p, end);
}

void append_utf8(char32_t code, std::string& out);

// The end of the longest valid stretch of text that starts at from (from itself when the byte there is not valid).
size_t valid_utf8_end(std::string_view text, size_t from);
// The end of the longest stretch from `from` in which no byte is part of a valid character.
size_t invalid_utf8_end(std::string_view text, size_t from);

// The length of the longest prefix of bytes after which no character stands open: what follows it could still become a
// valid character with more bytes (at most 3).
size_t closed_utf8_prefix(std::string_view bytes);

// Letter: \p{L}. Number: \p{N}. Space: White_Space (\s of the regex engine that tokenizer.json files are written for).
// Unicode 16.
enum class CharClass : uint8_t { letter, number, space, other, invalid };

CharClass classify(char32_t code);
bool is_word_char(char32_t code);  // \w: letters, marks, decimal digits, connector punctuation

struct ClassifiedChar {
  CharClass type;
  uint8_t size;  // 1 for an invalid byte
};
ClassifiedChar classify_multibyte(const unsigned char* p, const unsigned char* end);

constexpr std::array<CharClass, 128> make_ascii_classes() {
  std::array<CharClass, 128> classes{};
  for (int c = 0; c < 128; ++c) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    const bool space = c == ' ' || (c >= 9 && c <= 13);
    classes[static_cast<size_t>(c)] = letter                   ? CharClass::letter
                                      : space                  ? CharClass::space
                                      : (c >= '0' && c <= '9') ? CharClass::number
                                                               : CharClass::other;
  }
  return classes;
}
inline constexpr std::array<CharClass, 128> kAsciiClasses = make_ascii_classes();

inline ClassifiedChar classify_at(const unsigned char* p, const unsigned char* end) {
  if (*p < 0x80) return {kAsciiClasses[*p], 1};
  return classify_multibyte(p, end);
}

}  // namespace ingot
