#include "text/jinja/builtins.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "text/char_properties.h"
#include "text/normalizer.h"
#include "text/utf8.h"

namespace ingot::jinja {
namespace {

constexpr std::string_view kSpace = " \t\r\n\f\v";
constexpr size_t kLongest = size_t{1} << 26;  // characters that one replacement may make

std::string describe_kind(const Value& value) {
  if (value.is_undefined()) return "something undefined";
  return value.is_json() ? describe(value.json()) : "an object";
}

Error needs(std::string_view name, std::string_view what, const Value& found) {
  return input_error("'{}' needs {}, found {}", name, what, describe_kind(found));
}

std::string lower(const std::string& text) {
  std::string out;
  const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
  for (size_t at = 0; at < text.size();) {
    const Utf8Char c = decode_utf8(bytes + at, bytes + text.size());
    if (c.size == 0) {
      out += text[at++];
    } else {
      append_lower(c.code, out);
      at += c.size;
    }
  }
  return out;
}

// ASCII letters alone: templates use it on roles.
std::string upper(std::string text) {
  for (char& c : text) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return text;
}

std::string capitalize(const std::string& text) {
  return text.empty() ? text : upper(text.substr(0, 1)) + lower(text.substr(1));
}

std::string title(const std::string& text) {
  std::string out = lower(text);
  for (size_t i = 0; i < out.size(); ++i) {
    const bool inside =
        i > 0 && ((out[i - 1] >= 'a' && out[i - 1] <= 'z') || (out[i - 1] >= 'A' && out[i - 1] <= 'Z') ||
                  static_cast<unsigned char>(out[i - 1]) >= 0x80);
    if (!inside) out.replace(i, 1, upper(out.substr(i, 1)));
  }
  return out;
}

std::string strip(std::string_view text, std::string_view taken, bool left, bool right) {
  if (left) text.remove_prefix(std::min(text.find_first_not_of(taken), text.size()));
  if (right) text = text.substr(0, text.find_last_not_of(taken) + 1);
  return std::string(text);
}

Json split(std::string_view text, const Value& separator, int64_t most) {
  Json parts = Json::array();
  const bool by_space = !separator.is_string();
  const std::string mark = by_space ? "" : separator.json().get<std::string>();
  while (most < 0 || static_cast<int64_t>(parts.size()) < most) {
    if (by_space) text.remove_prefix(std::min(text.find_first_not_of(kSpace), text.size()));
    if (by_space && text.empty()) return parts;
    const size_t end = by_space ? text.find_first_of(kSpace) : text.find(mark);
    if (end == std::string_view::npos) break;
    parts.push_back(std::string(text.substr(0, end)));
    text.remove_prefix(end + (by_space ? 1 : mark.size()));
  }
  if (by_space) text.remove_prefix(std::min(text.find_first_not_of(kSpace), text.size()));
  if (!by_space || !text.empty()) parts.push_back(std::string(text));
  return parts;
}

Result<Value> replaced(const std::string& text, const Value& from, const Value& to) {
  if (!from.is_string() || !to.is_string() || from.json().get_ref<const std::string&>().empty())
    return input_error("'replace' needs two strings, the first not empty");
  const auto& old = from.json().get_ref<const std::string&>();
  const auto& fresh = to.json().get_ref<const std::string&>();
  if (text.size() / old.size() * fresh.size() > kLongest) return input_error("'replace' would make too long a text");
  return Value(replace_all(text, old, fresh));
}

// A property of an item by a path (`function.name`), for `attribute=`.
Value by_path(const Value& item, std::string_view path) {
  Value value = item;
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('.', begin), path.size());
    value = item_of(value, Json(std::string(path.substr(begin, end - begin))));
    begin = end + 1;
  }
  return value;
}

bool less(const Json& a, const Json& b) {
  if (a.is_number() && b.is_number()) return a.get<double>() < b.get<double>();
  if (a.is_string() && b.is_string()) return a.get_ref<const std::string&>() < b.get_ref<const std::string&>();
  return false;
}

Result<Value> length(const Value& value) {
  if (value.is_undefined()) return Value(Json(0));
  if (value.is_string()) return Value(Json(characters(value.json().get_ref<const std::string&>()).size()));
  if (value.json().is_structured()) return Value(Json(value.json().size()));
  return needs("length", "a string, list or dict", value);
}

Result<Value> number(const Value& value, bool real, const Value& fallback) {
  const Json& json = value.json();
  double result = 0;
  if (json.is_number() || json.is_boolean()) {
    if (!real && json.is_number_integer()) return value;
    result = json.is_boolean() ? static_cast<double>(json.get<bool>()) : json.get<double>();
  } else if (json.is_string()) {
    char* end = nullptr;
    const std::string text = strip(json.get_ref<const std::string&>(), kSpace, true, true);
    result = std::strtod(text.c_str(), &end);
    if (text.empty() || *end != '\0') return fallback.is_undefined() ? Value(Json(0)) : fallback;
  } else {
    return fallback.is_undefined() ? Value(Json(0)) : fallback;
  }
  if (real) return Value(Json(result));
  if (!(std::abs(result) < 9e18)) return input_error("'int' of {}", result);
  return Value(Json(static_cast<int64_t>(result)));
}

Result<Value> joined(const Json& items, const Arguments& arguments) {
  const std::string separator = arguments.get(0, "d").text();
  const Value attribute = arguments.get(1, "attribute");
  std::string out;
  bool first = true;
  for (const Json& item : items) {
    if (!std::exchange(first, false)) out += separator;
    out += attribute.is_string() ? by_path(Value(item), attribute.json().get_ref<const std::string&>()).text()
                                 : Value(item).text();
    if (out.size() > kLongest) return input_error("'join' would make too long a text");
  }
  return Value(Json(std::move(out)));
}

// select, reject, selectattr, rejectattr.
Result<Value> selected(const std::string& name, const Json& items, const Arguments& arguments) {
  const bool by_attribute = name.ends_with("attr"), keeps = name.starts_with("select");
  const size_t test = by_attribute ? 1 : 0;
  if (by_attribute && !arguments.get(0, "").is_string())
    return input_error("'{}' needs the name of an attribute", name);
  Arguments rest;
  for (size_t i = test + 1; i < arguments.values.size(); ++i) rest.values.push_back(arguments.values[i]);
  Json out = Json::array();
  for (const Json& item : items) {
    const Value tested =
        by_attribute ? by_path(Value(item), arguments.values[0].json().get_ref<const std::string&>()) : Value(item);
    bool passes = tested.truth();
    if (arguments.values.size() > test) {
      if (!arguments.values[test].is_string()) return input_error("'{}' needs the name of a test", name);
      INGOT_ASSIGN(passes, apply_test(arguments.values[test].json().get<std::string>(), tested, rest));
    }
    if (passes == keeps) out.push_back(item);
  }
  return Value(std::move(out));
}

Result<Value> mapped(const Json& items, const Arguments& arguments) {
  Json out = Json::array();
  Arguments rest;
  for (size_t i = 1; i < arguments.values.size(); ++i) rest.values.push_back(arguments.values[i]);
  const Value attribute = arguments.get(SIZE_MAX, "attribute"), fallback = arguments.get(SIZE_MAX, "default");
  if (!attribute.is_string() && !arguments.get(0, "").is_string())
    return input_error("'map' needs the name of a filter or an attribute=");
  for (const Json& item : items) {
    if (attribute.is_string()) {
      Value value = by_path(Value(item), attribute.json().get_ref<const std::string&>());
      out.push_back(value.is_undefined() ? fallback.json() : value.json());
      continue;
    }
    INGOT_ASSIGN(const Value value, apply_filter(arguments.values[0].json().get<std::string>(), Value(item), rest));
    out.push_back(value.json());
  }
  return Value(std::move(out));
}

Result<Value> dict_sorted(const Value& value) {
  if (!value.json().is_object()) return needs("dictsort", "a dict", value);
  std::vector<std::pair<std::string, Json>> pairs;
  for (const auto& [key, item] : value.json().items()) pairs.emplace_back(key, item);
  std::ranges::stable_sort(pairs, {}, [](const auto& pair) { return lower(pair.first); });
  Json out = Json::array();
  for (auto& [key, item] : pairs) out.push_back(Json::array({key, std::move(item)}));
  return Value(std::move(out));
}

Json pairs_of(const Json& dict) {
  Json out = Json::array();
  for (const auto& [key, item] : dict.items()) out.push_back(Json::array({key, item}));
  return out;
}

Result<Value> filter_items(const std::string& name, Json items, const Arguments& arguments) {
  if (name == "list") return Value(std::move(items));
  if (name == "first") return items.empty() ? Value() : Value(items.front());
  if (name == "last") return items.empty() ? Value() : Value(items.back());
  if (name == "join") return joined(items, arguments);
  if (name == "map") return mapped(items, arguments);
  if (name == "reverse") {
    std::reverse(items.begin(), items.end());
    return Value(std::move(items));
  }
  if (name == "unique") {
    Json out = Json::array();
    for (const Json& item : items) {
      if (std::ranges::none_of(out, [&](const Json& seen) { return equal(seen, item); })) out.push_back(item);
    }
    return Value(std::move(out));
  }
  if (name == "sort") {
    const Value attribute = arguments.get(2, "attribute");
    const auto key = [&](const Json& item) {
      return attribute.is_string() ? by_path(Value(item), attribute.json().get_ref<const std::string&>()).json() : item;
    };
    std::stable_sort(items.begin(), items.end(), [&](const Json& a, const Json& b) { return less(key(a), key(b)); });
    if (arguments.get(0, "reverse").truth()) std::reverse(items.begin(), items.end());
    return Value(std::move(items));
  }
  return selected(name, items, arguments);
}

Result<Value> filter_text(const std::string& name, const std::string& text, const Arguments& arguments) {
  if (name == "trim") {
    const Value taken = arguments.get(0, "chars");
    return Value(Json(strip(text, taken.is_string() ? taken.text() : std::string(kSpace), true, true)));
  }
  if (name == "lower") return Value(Json(lower(text)));
  if (name == "upper") return Value(Json(upper(text)));
  if (name == "capitalize") return Value(Json(capitalize(text)));
  if (name == "title") return Value(Json(title(text)));
  if (name == "replace") return replaced(text, arguments.get(0, "old"), arguments.get(1, "new"));
  if (name == "indent") {
    const Value width = arguments.get(0, "width");
    const int64_t count =
        width.json().is_number_integer() ? std::clamp<int64_t>(width.json().get<int64_t>(), 0, 1000) : 4;
    const std::string blanks(static_cast<size_t>(count), ' ');
    INGOT_ASSIGN(const Value inner, replaced(text, Value(Json("\n")), Value(Json("\n" + blanks))));
    return Value(Json((arguments.get(1, "first").truth() ? blanks : "") + inner.text()));
  }
  return Value(Json(text));  // string, safe, escape's absence
}

}  // namespace

Value Arguments::get(size_t place, std::string_view name) const {
  if (place < values.size()) return values[place];
  for (const auto& [known, value] : named) {
    if (known == name) return value;
  }
  return {};
}

Result<Json> items_of(const Value& value) {
  Json items = Json::array();
  if (value.is_undefined()) return items;
  const Json& json = value.json();
  if (json.is_array()) return json;
  if (json.is_string()) {
    for (std::string& character : characters(json.get_ref<const std::string&>())) items.push_back(std::move(character));
    return items;
  }
  if (!json.is_object()) return input_error("{} has no items", describe_kind(value));
  for (const auto& [key, item] : json.items()) items.push_back(key);
  return items;
}

Value item_of(const Value& value, const Json& index) {
  if (const auto fields = value.fields()) {
    const auto found = index.is_string() ? fields->find(index.get_ref<const std::string&>()) : fields->end();
    return found == fields->end() ? Value() : found->second;
  }
  const Json& json = value.json();
  if (json.is_object() && index.is_string()) {
    const auto found = json.find(index.get_ref<const std::string&>());
    return found == json.end() ? Value() : value.part(*found);
  }
  if (!index.is_number_integer()) return {};
  const auto at = [&](size_t size) {
    const auto place = index.get<int64_t>(), count = static_cast<int64_t>(size);
    const int64_t from_start = place < 0 ? (place < -count ? -1 : place + count) : place;
    return from_start < 0 || from_start >= count ? SIZE_MAX : static_cast<size_t>(from_start);
  };
  if (json.is_array()) {
    const size_t place = at(json.size());
    return place == SIZE_MAX ? Value() : value.part(json[place]);
  }
  if (json.is_string()) {
    const std::vector<std::string> all = characters(json.get_ref<const std::string&>());
    const size_t place = at(all.size());
    return place == SIZE_MAX ? Value() : Value(Json(all[place]));
  }
  return {};
}

Result<Value> apply_filter(const std::string& name, const Value& value, const Arguments& arguments) {
  static constexpr std::string_view kTexts[] = {"trim",    "lower",  "upper",  "capitalize", "title",
                                                "replace", "indent", "string", "safe"};
  static constexpr std::string_view kItems[] = {"list",   "first", "last",   "join",   "map",        "reverse",
                                                "unique", "sort",  "select", "reject", "selectattr", "rejectattr"};
  static constexpr std::string_view kOthers[] = {"length", "count", "default", "d",     "tojson",
                                                 "int",    "float", "abs",     "items", "dictsort"};
  if (std::ranges::find(kTexts, name) != std::end(kTexts)) return filter_text(name, value.text(), arguments);
  if (std::ranges::find(kItems, name) != std::end(kItems)) {
    INGOT_ASSIGN(Json items, items_of(value));
    return filter_items(name, std::move(items), arguments);
  }
  if (name == "length" || name == "count") return length(value);
  if (name == "default" || name == "d") {
    const bool falls_back = value.is_undefined() || (arguments.get(1, "boolean").truth() && !value.truth());
    const Value fallback = arguments.get(0, "default_value");
    return falls_back ? (fallback.is_undefined() ? Value(Json("")) : fallback) : value;
  }
  if (name == "tojson") {
    if (!value.is_json()) return needs(name, "a value", value);
    const Value indent = arguments.get(0, "indent");
    const bool indented = indent.json().is_number_integer();
    return Value(Json(to_json_text(
        value.json(), indented ? static_cast<int>(std::clamp<int64_t>(indent.json().get<int64_t>(), 0, 64)) : -1)));
  }
  if (name == "int" || name == "float") return number(value, name == "float", arguments.get(0, "default"));
  if (name == "abs") {
    if (!value.json().is_number()) return needs(name, "a number", value);
    if (value.json().is_number_integer()) {
      const auto whole = value.json().get<int64_t>();
      return Value(Json(whole < 0 && whole != INT64_MIN ? -whole : whole));
    }
    return Value(Json(std::abs(value.json().get<double>())));
  }
  if (name == "items") {
    if (value.is_undefined()) return Value(Json::array());
    if (!value.json().is_object()) return needs(name, "a dict", value);
    return Value(pairs_of(value.json()));
  }
  if (name == "dictsort") return dict_sorted(value);
  return input_error("the filter '{}' is not supported (known: {}, {}, {})", name, fmt::join(kTexts, ", "),
                     fmt::join(kItems, ", "), fmt::join(kOthers, ", "));
}

Result<bool> apply_test(const std::string& name, const Value& value, const Arguments& arguments) {
  static constexpr std::string_view kKnown[] = {
      "defined", "undefined",   "none",  "string",  "mapping", "sequence", "iterable",
      "number",  "integer",     "float", "boolean", "true",    "false",    "even",
      "odd",     "divisibleby", "in",    "equalto", "eq",      "ne",       "callable"};
  const Json& json = value.json();
  const Json& other = arguments.values.empty() ? Value().json() : arguments.values[0].json();
  if (name == "defined") return !value.is_undefined();
  if (name == "undefined") return value.is_undefined();
  if (name == "none") return value.is_json() && json.is_null();
  if (name == "string") return json.is_string();
  if (name == "mapping") return json.is_object() || value.fields() != nullptr;
  if (name == "sequence") return json.is_array() || json.is_string() || json.is_object();
  if (name == "iterable") return json.is_array() || json.is_string() || json.is_object() || value.is_undefined();
  if (name == "number") return json.is_number() || json.is_boolean();
  if (name == "integer") return json.is_number_integer();
  if (name == "float") return json.is_number_float();
  if (name == "boolean") return json.is_boolean();
  if (name == "true") return json.is_boolean() && json.get<bool>();
  if (name == "false") return json.is_boolean() && !json.get<bool>();
  if (name == "callable") return value.macro() != nullptr || value.method() != nullptr;
  if (name == "even" || name == "odd" || name == "divisibleby") {
    if (!json.is_number_integer()) return needs(name, "an integer", value);
    const int64_t by = name == "divisibleby" ? (other.is_number_integer() ? other.get<int64_t>() : 0) : 2;
    if (by == 0) return input_error("'divisibleby' needs an integer other than 0");
    const bool divides = by == -1 || json.get<int64_t>() % by == 0;
    return name == "odd" ? !divides : divides;
  }
  if (name == "equalto" || name == "eq" || name == "ne") return equal(json, other) == (name != "ne");
  if (name == "in") {
    if (arguments.values.empty()) return input_error("'in' needs a list");
    INGOT_ASSIGN(const Json items, items_of(arguments.values[0]));
    return std::ranges::any_of(items, [&](const Json& item) { return equal(item, json); });
  }
  return input_error("the test '{}' is not supported (known: {})", name, fmt::join(kKnown, ", "));
}

bool is_method(const Value& owner, std::string_view name) {
  static constexpr std::string_view kString[] = {"strip",    "lstrip", "rstrip", "split", "startswith",
                                                 "endswith", "upper",  "lower",  "title", "capitalize",
                                                 "replace",  "join",   "find",   "count"};
  static constexpr std::string_view kDict[] = {"items", "keys", "values", "get"};
  if (owner.is_string()) return std::ranges::find(kString, name) != std::end(kString);
  if (owner.json().is_object()) return std::ranges::find(kDict, name) != std::end(kDict);
  return false;
}

Result<Value> call_method(const Value& owner, const std::string& name, const Arguments& arguments) {
  const Value first = arguments.get(0, ""), second = arguments.get(1, "");
  const Json& json = owner.json();
  if (json.is_object()) {
    if (name == "items") return Value(pairs_of(json));
    if (name == "get") {
      const Value found = item_of(owner, first.json());
      if (!found.is_undefined()) return found;
      return second.is_undefined() ? Value(Json()) : second;
    }
    Json out = Json::array();
    for (const auto& [key, item] : json.items()) out.push_back(name == "keys" ? Json(key) : item);
    return Value(std::move(out));
  }
  const auto& text = json.get_ref<const std::string&>();
  if (name.ends_with("strip")) {
    const std::string taken = first.is_string() ? first.text() : std::string(kSpace);
    return Value(Json(strip(text, taken, name != "rstrip", name != "lstrip")));
  }
  if (name == "upper") return Value(Json(upper(text)));
  if (name == "lower") return Value(Json(lower(text)));
  if (name == "title") return Value(Json(title(text)));
  if (name == "capitalize") return Value(Json(capitalize(text)));
  if (name == "replace") return replaced(text, first, second);
  if (name == "join") {
    INGOT_ASSIGN(const Json items, items_of(first));
    Arguments separator;
    separator.values.push_back(owner);
    return joined(items, separator);
  }
  if (name == "split") {
    if (first.is_string() && first.json().get_ref<const std::string&>().empty())
      return input_error("'split' needs a separator that is not empty");
    const Value most = arguments.get(1, "maxsplit");
    return Value(split(text, first, most.json().is_number_integer() ? most.json().get<int64_t>() : -1));
  }
  if (name == "startswith" || name == "endswith") {
    INGOT_ASSIGN(const Json all, first.is_string() ? Result<Json>(Json::array({first.json()})) : items_of(first));
    return Value(Json(std::ranges::any_of(all, [&](const Json& part) {
      if (!part.is_string()) return false;
      const auto& sought = part.get_ref<const std::string&>();
      return name == "startswith" ? text.starts_with(sought) : text.ends_with(sought);
    })));
  }
  if (!first.is_string()) return needs(name, "a string", first);
  const auto& sought = first.json().get_ref<const std::string&>();
  if (name == "find") {
    const size_t at = text.find(sought);
    return Value(Json(at == std::string::npos ? -1 : static_cast<int64_t>(characters(text.substr(0, at)).size())));
  }
  int64_t count = 0;
  for (size_t at = text.find(sought); at != std::string::npos && !sought.empty();
       at = text.find(sought, at + sought.size()))
    ++count;
  return Value(Json(count));
}

}  // namespace ingot::jinja
