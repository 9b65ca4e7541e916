// ConfigReader: how a family reads its keys from a config.json object, with their defaults, and how it says which keys
// it honours. What is read is recorded with its final value, so that the resolved config.json can be written back. The
// first error is kept and given by finish(); after an error, reading goes on with defaults.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace ingot {

// A key that no reader asked for: an error with the nearest known key (what a user wrote), or a warning in the log (a
// file of others may hold more than one knows).
enum class UnknownKeys { refuse, warn };

class ConfigReader {
 public:
  // `json` is the text of an object; `where` (a path, or "model.config") begins every message.
  static Result<ConfigReader> parse(std::string_view json, std::string where, UnknownKeys unknown);
  ConfigReader(ConfigReader&&) noexcept;
  ConfigReader& operator=(ConfigReader&&) noexcept;
  ~ConfigReader();

  // Each leaves `value` as it is where the key is absent or null. A value of another type or out of range is an error.
  void integer(std::string_view key, int64_t& value, int64_t minimum = 1, int64_t maximum = int64_t{1} << 31);
  void number(std::string_view key, double& value, double minimum, double maximum);
  void flag(std::string_view key, bool& value);
  void text(std::string_view key, std::string& value);
  template <class Enum>
  void choice(std::string_view key, Enum& value, std::initializer_list<std::pair<std::string_view, Enum>> choices) {
    std::string name;
    for (const auto& [spelling, one] : choices)
      if (one == value && name.empty()) name = spelling;
    std::vector<std::string_view> names;
    for (const auto& one : choices) names.push_back(one.first);
    text_of(key, name, names);
    for (const auto& [spelling, one] : choices)
      if (spelling == name) value = one;
  }

  // `other` is another name of `key` (Hugging Face's attribute_map); both at once is an error.
  void alias(std::string_view key, std::string_view other);
  // Keys that change nothing in what is computed here; they are kept for writing back.
  void informational(std::initializer_list<std::string_view> keys);
  // Keys of which one value alone is honoured (`accepted`, as JSON: "false", "1"); any other is refused by name.
  void only(std::initializer_list<std::string_view> keys, std::string_view accepted);

  bool has(std::string_view key) const;  // present and not null
  // The object at `key` ({} where absent); what it reads is recorded in this reader's key. Its finish() must be called
  // and its error, if any, is this reader's too.
  ConfigReader object(std::string_view key);
  // Records an error about `key` unless there is one already.
  void fail(std::string_view key, std::string_view problem);
  // The first error, else that of keys which nobody read.
  Status finish();

  // The keys that were read, with their final values, and the informational ones: the resolved config.json object.
  std::string resolved() const;
  void set_text(std::string_view key, std::string_view value);  // into resolved() alone
  void set_list(std::string_view key, const std::vector<std::string>& values);

 private:
  struct State;
  explicit ConfigReader(std::unique_ptr<State> state);
  void text_of(std::string_view key, std::string& value, const std::vector<std::string_view>& choices);
  std::unique_ptr<State> state_;
};

// `base` with the keys of `overrides` in place of its own (null removes one); objects are replaced as a whole. Both are
// JSON objects, `where` is that of the overrides.
Result<std::string> merge_configs(std::string_view base, std::string_view overrides, const std::string& where);

}  // namespace ingot
