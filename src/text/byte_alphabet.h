// The byte-level alphabet of GPT-2: each byte stands as one printable character in a vocabulary ('a' as 'a', the space
// as 'Ġ', U+0120), so that tokens of any bytes can be written in JSON.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace ingot {

std::string bytes_to_alphabet(std::string_view bytes);
// Nothing when a character of text is not in the alphabet.
std::optional<std::string> alphabet_to_bytes(std::string_view text);

}  // namespace ingot
