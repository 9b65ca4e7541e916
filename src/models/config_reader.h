// ConfigReader: how a family reads its keys from a config.json object, with their defaults, and how it says which keys
// it honours. What is read is recorded with its final value, so that the resolved config.json can be written back. The
// first error is kept and given by finish(); after an error, reading goes on with defaults.
#pragma once

#include <cstdint>
#include <functional>
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
  // `json` is the text of an object; `where` (a path, or "model.config") begins every message. Errors: input where
  // unknown keys are but a warning (a file), else usage.
  static Result<ConfigReader> parse(std::string_view json, std::string where, UnknownKeys unknown);
  ConfigReader(ConfigReader&&) noexcept;
  ConfigReader& operator=(ConfigReader&&) noexcept;
  ~ConfigReader();

  // Each leaves `value` as it is where the key is absent or null. A value of another type or out of range is an error.
  void integer(std::string_view key, int64_t& value, int64_t minimum = 1, int64_t maximum = int64_t{1} << 31);
  void number(std::string_view key, double& value, double minimum, double maximum);
  void flag(std::string_view key, bool& value);
  void text(std::string_view key, std::string& value);
  // One of the spellings; of an enumerator's several the first is written where the key is absent.
  template <class Enum>
  void choice(std::string_view key, Enum& value, std::initializer_list<std::pair<std::string_view, Enum>> choices) {
    std::string spelling;
    std::vector<std::string_view> spellings;
    for (const auto& [name, one] : choices) {
      if (one == value && spelling.empty()) spelling = name;
      spellings.push_back(name);
    }
    one_of(key, spelling, spellings);
    for (const auto& [name, one] : choices)
      if (name == spelling) value = one;
  }
  // Reads the object at `key`, where there is one, with a reader of its own.
  void object(std::string_view key, const std::function<void(ConfigReader& in)>& read);

  // Keys that change nothing in what is computed here; they are kept for writing back.
  void informational(std::initializer_list<std::string_view> keys);
  // A key of which one value alone (as JSON) is honoured: any other is refused.
  void only(std::string_view key, std::string_view accepted);

  bool has(std::string_view key);  // present and not null; makes the key a known one
  // Present and null where that is a value of its own, which resolved() then has.
  bool is_null(std::string_view key);
  // Records an error about `key` unless there is one already.
  void fail(std::string_view key, std::string_view problem);
  // The first error, else that of keys which nobody read.
  Status finish();

  // The keys that were read, with their final values, and the informational ones: the resolved config.json object.
  std::string resolved() const;
  // The keys that are known, as they were given.
  std::string given() const;
  void write(std::string_view key, std::string_view value);  // a text into resolved() alone
  void write(std::string_view key, const std::vector<std::string>& values);

 private:
  struct State;
  explicit ConfigReader(std::unique_ptr<State> state);
  void one_of(std::string_view key, std::string& value, const std::vector<std::string_view>& spellings);
  std::unique_ptr<State> state_;
};

// A key's other name (Hugging Face's attribute_map).
struct KeyAlias {
  std::string alias, key;
};

// The text of a JSON object, checked, with the aliases' keys under their proper names; both at once is an error.
Result<std::string> rename_keys(std::string_view json, const std::vector<KeyAlias>& aliases, const std::string& where);

// `base` with the keys of `overrides` in place of its own, null included; nested objects are replaced as a whole.
Result<std::string> merge_configs(std::string_view base, std::string_view overrides, const std::string& where);

// The model_type of a config.json object or, without one, the first of its architectures; empty where there is neither.
Result<std::string> model_type_of(std::string_view json, const std::string& where);

}  // namespace ingot
