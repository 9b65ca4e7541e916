#include "text/byte_alphabet.h"

#include <array>
#include <cstdint>

#include "text/utf8.h"

namespace ingot {
namespace {

// Printable bytes of Latin-1 stand for themselves, the 68 others for U+0100 onwards in order.
struct Alphabet {
  std::array<char32_t, 256> character{};
  std::array<int16_t, 0x144> byte{};
};
constexpr Alphabet make_alphabet() {
  Alphabet alphabet;
  for (int16_t& byte : alphabet.byte) byte = -1;
  char32_t next = 0x100;
  for (int b = 0; b < 256; ++b) {
    const bool printable = (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
    const char32_t character = printable ? static_cast<char32_t>(b) : next++;
    alphabet.character[static_cast<size_t>(b)] = character;
    alphabet.byte[character] = static_cast<int16_t>(b);
  }
  return alphabet;
}
constexpr Alphabet kAlphabet = make_alphabet();

}  // namespace

std::string bytes_to_alphabet(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size() * 2);
  for (const char c : bytes) append_utf8(kAlphabet.character[static_cast<unsigned char>(c)], out);
  return out;
}

std::optional<std::string> alphabet_to_bytes(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  const auto* p = reinterpret_cast<const unsigned char*>(text.data());
  const auto* end = p + text.size();
  while (p < end) {
    const Utf8Char c = decode_utf8(p, end);
    if (c.size == 0 || c.code >= kAlphabet.byte.size() || kAlphabet.byte[c.code] < 0) return std::nullopt;
    out.push_back(static_cast<char>(kAlphabet.byte[c.code]));
    p += c.size;
  }
  return out;
}

}  // namespace ingot
