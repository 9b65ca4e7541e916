#include "text/json_reader.h"

#include <algorithm>

#include "base/json_text.h"

namespace ingot {
namespace {
const Json kNull;
}

Result<Json> parse_json_object(std::string_view text, std::string_view source_name) {
  Json json = parse_json<Json>(text);
  if (!json.is_object()) return input_error("{}: expected a JSON object", source_name);
  return json;
}

std::string describe(const Json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return fmt::format("an array of {}", value.size());
  std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  if (text.size() > 60) text = text.substr(0, 57) + "...";
  return text;
}

Error JsonPlace::wrong(std::string_view what) const {
  return input_error("{}: {}: {}", source_, path_.empty() ? "top level" : path_, what);
}

Error JsonPlace::expected(std::string_view what) const {
  return wrong(fmt::format("expected {}, found {}", what, is_null() ? "nothing" : describe(*value_)));
}

Error JsonPlace::unsupported(std::string_view what) const {
  return wrong(fmt::format("{} is not supported", what));
}

JsonPlace JsonPlace::operator[](std::string_view key) const {
  std::string path = path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
  const auto found = value_->is_object() ? value_->find(std::string(key)) : value_->end();
  return {found == value_->end() ? kNull : *found, source_, std::move(path)};
}

JsonPlace JsonPlace::operator[](size_t index) const {
  return {(*value_)[index], source_, fmt::format("{}[{}]", path_, index)};
}

Status JsonPlace::is_object_with(std::initializer_list<std::string_view> known_keys) const {
  if (!value_->is_object()) return expected("an object");
  for (const auto& [key, value] : value_->items()) {
    if (std::find(known_keys.begin(), known_keys.end(), key) == known_keys.end()) {
      return wrong(fmt::format("the key '{}' is not supported (known here: {})", key, fmt::join(known_keys, ", ")));
    }
  }
  return {};
}

Status JsonPlace::is_array() const {
  if (!value_->is_array()) return expected("an array");
  return {};
}

Result<std::string> JsonPlace::string() const {
  if (!value_->is_string()) return expected("a string");
  return value_->get<std::string>();
}

Result<bool> JsonPlace::boolean() const {
  if (!value_->is_boolean()) return expected("true or false");
  return value_->get<bool>();
}

Result<bool> JsonPlace::boolean_or(bool absent) const {
  if (is_null()) return absent;
  return boolean();
}

Result<int64_t> JsonPlace::integer(int64_t lowest, int64_t highest) const {
  const bool fits = value_->is_number_unsigned() ? value_->get<uint64_t>() <= static_cast<uint64_t>(INT64_MAX)
                                                 : value_->is_number_integer();
  if (fits) {
    const int64_t number = value_->get<int64_t>();
    if (number >= lowest && number <= highest) return number;
  }
  return expected(fmt::format("an integer from {} to {}", lowest, highest));
}

Result<std::string> JsonPlace::type() const {
  if (!value_->is_object()) return expected("an object with a \"type\"");
  return (*this)["type"].string();
}

}  // namespace ingot
