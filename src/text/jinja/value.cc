#include "text/jinja/value.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "text/utf8.h"

namespace ingot::jinja {
namespace {

const Json kNull;

std::string number_text(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number < 0 ? "-inf" : "inf";
  std::string text = fmt::format("{}", number);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string quoted(const std::string& text) {
  const char quote = text.find('\'') != std::string::npos && text.find('"') == std::string::npos ? '"' : '\'';
  std::string out(1, quote);
  for (const char c : text) {
    if (c == quote || c == '\\') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (c == '\r') {
      out += "\\r";
    } else {
      out += c;
    }
  }
  return out + quote;
}

void write_json(const Json& value, int indent, int depth, std::string& out) {
  const auto line = [&](int level) {
    if (indent >= 0) out += '\n' + std::string(static_cast<size_t>(indent * level), ' ');
  };
  const std::string_view comma = indent >= 0 ? "," : ", ";
  if (value.empty() || !value.is_structured()) {
    if (value.is_number_float()) {
      out += number_text(value.get<double>());
    } else {
      out += value.dump(-1, ' ', false, Json::error_handler_t::replace);
    }
    return;
  }
  out += value.is_array() ? '[' : '{';
  bool first = true;
  for (const auto& [key, item] : value.items()) {
    if (!std::exchange(first, false)) out += comma;
    line(depth + 1);
    if (value.is_object()) out += Json(key).dump(-1, ' ', false, Json::error_handler_t::replace) + ": ";
    write_json(item, indent, depth + 1, out);
  }
  line(depth);
  out += value.is_array() ? ']' : '}';
}

}  // namespace

const Json& Value::json() const {
  const auto* json = std::get_if<std::shared_ptr<const Json>>(&content_);
  return json != nullptr ? **json : kNull;
}

Value Value::part(const Json& inside) const {
  return Value(std::shared_ptr<const Json>(std::get<std::shared_ptr<const Json>>(content_), &inside));
}

std::shared_ptr<Namespace> Value::fields() const {
  const auto* fields = std::get_if<std::shared_ptr<Namespace>>(&content_);
  return fields != nullptr ? *fields : nullptr;
}

const Node* Value::macro() const {
  const auto* macro = std::get_if<const Node*>(&content_);
  return macro != nullptr ? *macro : nullptr;
}

bool Value::truth() const {
  if (!is_json()) return !is_undefined();
  const Json& value = json();
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number()) return value.get<double>() != 0;
  if (value.is_string()) return !value.get_ref<const std::string&>().empty();
  return !value.empty();  // null, list, dict
}

std::string repr(const Json& value) {
  if (value.is_null()) return "None";
  if (value.is_boolean()) return value.get<bool>() ? "True" : "False";
  if (value.is_number_float()) return number_text(value.get<double>());
  if (value.is_number()) return value.dump();
  if (value.is_string()) return quoted(value.get_ref<const std::string&>());
  std::string out(1, value.is_array() ? '[' : '{');
  bool first = true;
  for (const auto& [key, item] : value.items()) {
    if (!std::exchange(first, false)) out += ", ";
    if (value.is_object()) out += quoted(key) + ": ";
    out += repr(item);
  }
  return out + (value.is_array() ? ']' : '}');
}

std::string Value::text() const {
  if (is_undefined()) return "";
  if (!is_json()) return "<object>";
  return json().is_string() ? json().get<std::string>() : repr(json());
}

bool equal(const Json& a, const Json& b) {
  const auto number = [](const Json& value) {
    return value.is_boolean() ? static_cast<double>(value.get<bool>()) : value.get<double>();
  };
  const auto is_number = [](const Json& value) { return value.is_number() || value.is_boolean(); };
  if (is_number(a) && is_number(b)) {
    if (a.is_number_integer() && b.is_number_integer()) return a == b;
    return number(a) == number(b);
  }
  if (a.is_array() && b.is_array()) return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), equal);
  if (a.is_object() && b.is_object()) {
    if (a.size() != b.size()) return false;
    return std::ranges::all_of(a.items(), [&](const auto& item) {
      const auto found = b.find(item.key());
      return found != b.end() && equal(item.value(), *found);
    });
  }
  return a == b;
}

std::string to_json_text(const Json& value, int indent) {
  std::string out;
  write_json(value, indent, 0, out);
  return out;
}

std::vector<std::string> characters(std::string_view text) {
  std::vector<std::string> all;
  const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
  for (size_t at = 0; at < text.size();) {
    const size_t size = std::max<size_t>(decode_utf8(bytes + at, bytes + text.size()).size, 1);
    all.emplace_back(text.substr(at, size));
    at += size;
  }
  return all;
}

}  // namespace ingot::jinja
