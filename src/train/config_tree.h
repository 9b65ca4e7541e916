// YAML as a tree of plain values that remember where they stand, the overrides that change it, and the reading of
// scalars by YAML 1.2's core schema. What config.cc reads; nobody else needs it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace ingot::config {

struct Entry;

struct Value {
  enum class Kind { null, scalar, list, map };
  Kind kind = Kind::null;
  bool quoted = false;         // a scalar that is a string whatever it looks like
  std::string text;            // of a scalar
  std::string origin;          // "run.yaml:12", or `override "a.b=c"`
  std::vector<Value> items;    // of a list
  std::vector<Entry> entries;  // of a map, in the order of the file; keys are unique
};

struct Entry {
  std::string key;
  std::string origin;  // of the key
  Value value;
};

// Errors: usage, with file and line: syntax, a key twice, a key that is no scalar, nesting without end, more than one
// document.
Result<Value> parse_yaml(std::string_view text, std::string_view name);
// Applies "a.b.0.c=VALUE". Missing sections are made, and an index that equals the size of a list appends to it.
Status apply_override(Value& root, const std::string& text);

// nullopt: not of that type.
std::optional<bool> as_bool(const Value& value);
std::optional<int64_t> as_integer(const Value& value);  // whole numbers that fit; "2e9" is one too
std::optional<double> as_real(const Value& value);      // NaN, infinities and what overflows included, as such
std::optional<std::string> as_string(const Value& value);
bool is_number(const Value& value);

// What was found, for messages: "-1", `the string "a"`, "a list", "a section", "nothing".
std::string describe(const Value& value);
// The value as JSON text; nullopt where a number in it is not finite.
std::optional<std::string> as_json(const Value& value);

// Levenshtein's distance with neighbours that are swapped counting once.
size_t edit_distance(std::string_view a, std::string_view b);

}  // namespace ingot::config
