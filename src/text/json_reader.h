// Reading the stages of a tokenizer.json: every error names the file, the key's path in it, what was expected and what
// was found. A key that is not known is refused, since what it asks for would silently not happen.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace ingot {

using Json = nlohmann::ordered_json;

// A value and where it stands. Valid as long as the document.
class JsonPlace {
 public:
  JsonPlace(const Json& value, std::string source, std::string path)
      : value_(&value), source_(std::move(source)), path_(std::move(path)) {}

  const Json& value() const { return *value_; }
  bool is_null() const { return value_->is_null(); }
  Error wrong(std::string_view what) const;     // "SOURCE: PATH: WHAT"
  Error expected(std::string_view what) const;  // … "expected WHAT, found VALUE"

  // The value of a key, or null where the object lacks it. Only for objects.
  JsonPlace operator[](std::string_view key) const;
  JsonPlace operator[](size_t index) const;  // only for arrays; index in range
  Status is_object_with(std::initializer_list<std::string_view> known_keys) const;
  Status is_array() const;

  Result<std::string> string() const;
  Result<bool> boolean() const;
  Result<bool> boolean_or(bool absent) const;  // absent or null
  Result<int64_t> integer(int64_t lowest, int64_t highest) const;
  // The object's "type".
  Result<std::string> type() const;
  Error unsupported(std::string_view what) const;  // "… is not supported by …"

 private:
  const Json* value_;
  std::string source_, path_;
};

// The object that a text holds; any other text is an error that names the source.
Result<Json> parse_json_object(std::string_view text, std::string_view source_name);

// A short printable form of a value, for messages.
std::string describe(const Json& value);

}  // namespace ingot
