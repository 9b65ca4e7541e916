// Normalizer: changes text before it is cut into pieces. Prepend, Replace (of a string), NFC, NFD, NFKC, NFKD and
// sequences of them; bytes that are not valid UTF-8 stay as they are.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"

namespace ingot {

class JsonPlace;

class Normalizer {
 public:
  Normalizer() = default;  // changes nothing
  // The "normalizer" of a tokenizer.json; null changes nothing.
  static Result<Normalizer> read(const JsonPlace& place);

  bool empty() const { return steps_.empty(); }
  std::string apply(std::string_view text) const;

 private:
  struct Prepend {
    std::string text;  // before any text that is not empty
  };
  struct Replace {
    std::string from, to;
  };
  struct UnicodeForm {
    bool compose = false;
    bool compatible = false;
    std::string apply(std::string_view text) const;
  };
  Status add(const JsonPlace& place, int depth);
  std::vector<std::variant<Prepend, Replace, UnicodeForm>> steps_;
};

std::string replace_all(std::string_view text, std::string_view from, std::string_view to);

// The "pattern" of a Replace, which must be {"String": text} with text not empty.
Result<std::string> read_string_pattern(const JsonPlace& pattern);

}  // namespace ingot
