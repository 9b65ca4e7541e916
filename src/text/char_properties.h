// What the stages of a tokenizer.json ask of a character, as Hugging Face's library (tokenizers 0.22) answers. Its
// parts have tables of different Unicode versions: normal forms and combining marks know Unicode 9, the categories of
// BERT's stages Unicode 8, lower case, white space and numbers Unicode 17. utf8proc 2.8 knows Unicode 15; the
// differences are tables here, taken from that library's answers for every code point (tests/oracles/tokenizers.sh asks
// again).
#pragma once

#include <string>
#include <string_view>

namespace ingot {

bool is_white_space(char32_t code);      // White_Space
bool is_numeric(char32_t code);          // Nd, Nl, No
bool is_punctuation(char32_t code);      // P*, and the ASCII symbols
bool is_nonspacing_mark(char32_t code);  // Mn
bool is_combining_mark(char32_t code);   // Mn, Mc, Me
bool is_cjk_ideograph(char32_t code);    // the blocks that BERT puts spaces around
bool is_whitespace_word(char32_t code);  // \w of the pre-tokenizer Whitespace: with Alphabetic and Join_Control
bool is_removed_control(char32_t code);  // Cc, Cf, Co, U+0000 and U+FFFD, but not tab, line feed, carriage return
void append_lower(char32_t code, std::string& out);

// A normal form of Unicode (NFC, NFD, NFKC, NFKD); bytes that are not valid UTF-8 stay as they are.
struct UnicodeForm {
  bool compose = false;
  bool compatible = false;
  std::string apply(std::string_view text) const;
};

}  // namespace ingot
