// The values of a template. Internal to text/jinja/.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <variant>

#include "text/jinja/ast.h"

namespace ingot::jinja {

class Value;

// What namespace() makes: the one value that `set` may change inside.
using Namespace = std::map<std::string, Value>;

class Value {
 public:
  struct Undefined {};
  // A method taken from a value but not called yet.
  struct Method {
    std::shared_ptr<const Value> owner;
    std::string name;
  };

  Value() = default;                                                          // undefined
  Value(Json json) : Value(std::make_shared<const Json>(std::move(json))) {}  // NOLINT: JSON is a value
  Value(std::shared_ptr<const Json> json) : content_(std::move(json)) {}      // NOLINT
  explicit Value(std::shared_ptr<Namespace> fields) : content_(std::move(fields)) {}
  explicit Value(const Node* macro) : content_(macro) {}
  explicit Value(Method method) : content_(std::move(method)) {}

  bool is_undefined() const { return std::holds_alternative<Undefined>(content_); }
  bool is_json() const { return std::holds_alternative<std::shared_ptr<const Json>>(content_); }
  // null for what is no JSON.
  const Json& json() const;
  // A part of this JSON, which shares its memory.
  Value part(const Json& inside) const;
  std::shared_ptr<Namespace> fields() const;  // of a namespace, else nullptr
  const Node* macro() const;                  // else nullptr
  const Method* method() const { return std::get_if<Method>(&content_); }
  bool is_string() const { return json().is_string(); }

  bool truth() const;
  // As {{ }} prints it: what Python's str gives.
  std::string text() const;

 private:
  std::variant<Undefined, std::shared_ptr<const Json>, std::shared_ptr<Namespace>, const Node*, Method> content_;
};

// As Python compares: True == 1, 1 == 1.0.
bool equal(const Json& a, const Json& b);

// As Python's json.dumps with ensure_ascii=False; indent < 0: on one line.
std::string to_json_text(const Json& value, int indent);

// Python's repr.
std::string repr(const Json& value);

// The characters of a string, as UTF-8 each.
std::vector<std::string> characters(std::string_view text);

}  // namespace ingot::jinja
