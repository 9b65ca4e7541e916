// Filters, tests and methods. Internal to text/jinja/.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "text/jinja/value.h"

namespace ingot::jinja {

struct Arguments {
  std::vector<Value> values;
  std::vector<std::pair<std::string, Value>> named;
  // The argument at a place or with a name; undefined where neither is given.
  Value get(size_t place, std::string_view name) const;
};

// Errors say what is wrong, without a place; the caller adds it. An unknown name is an error that lists the known ones.
Result<Value> apply_filter(const std::string& name, const Value& value, const Arguments& arguments);
Result<bool> apply_test(const std::string& name, const Value& value, const Arguments& arguments);
// A method of a string, list or dict ("strip", "items", …).
bool is_method(const Value& owner, std::string_view name);
Result<Value> call_method(const Value& owner, const std::string& name, const Arguments& arguments);

// The items that a loop or a filter sees: of a list its items, of a dict its keys, of a string its characters, nothing
// of what is undefined. An error for anything else.
Result<Json> items_of(const Value& value);

// value[index] or value.index; undefined where there is none.
Value item_of(const Value& value, const Json& index);

}  // namespace ingot::jinja
