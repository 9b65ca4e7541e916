// Regex: a pattern of a tokenizer.json on PCRE2 (JIT, UTF, UCP). The patterns are written for Oniguruma; where the two
// read the same text differently it is translated: \s and \S mean Unicode's White_Space (PCRE2's \s also has U+180E),
// ^ and $ match at line ends, and general categories (\p{L}) are those of Unicode 16, where PCRE2 10.42 knows 14.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "base/parallel.h"
#include "base/result.h"

namespace ingot {

// Immutable, thread-safe; copies share the compiled pattern.
class Regex {
 public:
  // The error (ErrorKind::input) says where in the pattern and why.
  static Result<Regex> compile(std::string_view pattern);

  // Calls on_match(begin, end) for each match, in order, none overlapping; an empty match is reported too. Bytes that
  // are not valid UTF-8 are like the ends of the text: no match contains or looks across them. A pattern that exceeds
  // PCRE2's limits at some place matches nothing more in that valid stretch of text.
  void find_all(std::string_view text, FunctionRef<void(size_t begin, size_t end)> on_match) const;

 private:
  struct Code;
  std::shared_ptr<const Code> code_;
};

}  // namespace ingot
