// Cuts a template into text, tags and the tokens inside them. White space as in Jinja with trim_blocks and
// lstrip_blocks, which is how chat templates are written. Internal to text/jinja/.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ingot::jinja {

struct Token {
  enum class Kind { text, print_begin, print_end, tag_begin, tag_end, name, string, integer, real, op, end };
  Kind kind = Kind::end;
  int line = 0;
  std::string text;  // string: what it stands for; integer, real: as written
};

// The last token is an `end`. Errors are ErrorKind::input: "SOURCE: line N: …".
Result<std::vector<Token>> tokenize(std::string_view source, std::string_view source_name);

}  // namespace ingot::jinja
