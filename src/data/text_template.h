// TextTemplate: "Age {age}, job {job}" turns a row's values into text. "{{" and "}}" are plain braces.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/parallel.h"
#include "base/result.h"

namespace ingot {

class TextTemplate {
 public:
  // ErrorKind::usage, naming the position, for a brace without a partner or an empty name.
  static Result<TextTemplate> parse(std::string_view text);

  // The names in order of appearance, each once.
  const std::vector<std::string>& keys() const { return keys_; }
  // Appends the text to `out`; `append_value(k, out)` appends the value of keys()[k].
  Status render(FunctionRef<Status(size_t key, std::string& out)> append_value, std::string& out) const;

 private:
  struct Part {
    std::string literal;
    int key = -1;  // what follows the literal; -1: nothing
  };
  int key_index(std::string_view name);

  std::vector<Part> parts_;
  std::vector<std::string> keys_;
};

}  // namespace ingot
