#include "data/text_template.h"

#include <algorithm>

namespace ingot {

int TextTemplate::key_index(std::string_view name) {
  const auto found = std::find(keys_.begin(), keys_.end(), name);
  if (found == keys_.end()) {
    keys_.emplace_back(name);
    return static_cast<int>(keys_.size()) - 1;
  }
  return static_cast<int>(found - keys_.begin());
}

Result<TextTemplate> TextTemplate::parse(std::string_view text) {
  TextTemplate result;
  Part part;
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c != '{' && c != '}') {
      part.literal.push_back(c);
      continue;
    }
    if (at + 1 < text.size() && text[at + 1] == c) {
      part.literal.push_back(c);
      ++at;
      continue;
    }
    const size_t close = c == '{' ? text.find('}', at) : std::string_view::npos;
    if (close == std::string_view::npos)
      return usage_error("template \"{}\": the '{}' at position {} has no partner; write '{}{}' for a plain brace",
                         text, c, at, c, c);
    if (close == at + 1)
      return usage_error("template \"{}\": no name between the braces at position {}; write a column as {{name}}", text,
                         at);
    part.key = result.key_index(text.substr(at + 1, close - at - 1));
    result.parts_.push_back(std::move(part));
    part = {};
    at = close;
  }
  if (!part.literal.empty()) result.parts_.push_back(std::move(part));
  return result;
}

Status TextTemplate::render(FunctionRef<Status(size_t, std::string&)> append_value, std::string& out) const {
  for (const Part& part : parts_) {
    out += part.literal;
    if (part.key >= 0) INGOT_TRY(append_value(static_cast<size_t>(part.key), out));
  }
  return {};
}

}  // namespace ingot
