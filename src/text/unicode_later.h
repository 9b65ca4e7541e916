// The characters that Unicode 15 to 16 added to what PCRE2 10.42 knows (Unicode 14), by general category, so that the
// classes of a regex are those of the regex engine that tokenizer.json files are written for.
#pragma once

#include <string>
#include <string_view>

namespace ingot {

// Those of a category ("Lu") or group of categories ("L"), as they stand in a class of a regex:
// \x{897}\x{1C89}-\x{1C8A}…. Empty for other names.
std::string later_characters(std::string_view category);

}  // namespace ingot
