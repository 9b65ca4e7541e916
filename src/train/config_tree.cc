#include "train/config_tree.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <sstream>

#include "text/utf8.h"

namespace ingot::config {
namespace {

// Limits that no real configuration meets, and an alias that holds itself or doubles at each level does.
constexpr int kMaxDepth = 32;
constexpr int kMaxValues = 100000;

// Copies a YAML node into a Value.
class Converter {
 public:
  // `fixed` stands for every origin where it is not empty (an override has no lines worth showing).
  Converter(std::string_view name, std::string_view fixed) : name_(name), fixed_(fixed) {}

  Result<Value> convert(const YAML::Node& node, int depth = 0) {
    Value value;
    value.origin = origin(node);
    if (depth > kMaxDepth) return usage_error("{}: nested more than {} levels deep", value.origin, kMaxDepth);
    if (++values_ > kMaxValues) return usage_error("{}: more than {} values", value.origin, kMaxValues);
    switch (node.Type()) {
      case YAML::NodeType::Undefined:
      case YAML::NodeType::Null:
        return value;
      case YAML::NodeType::Scalar:
        value.kind = Value::Kind::scalar;
        value.text = node.Scalar();
        value.quoted = node.Tag() == "!" || node.Tag() == "tag:yaml.org,2002:str";
        return value;
      case YAML::NodeType::Sequence:
        return convert_list(node, depth, std::move(value));
      case YAML::NodeType::Map:
        return convert_map(node, depth, std::move(value));
    }
    return value;
  }

 private:
  std::string origin(const YAML::Node& node) const {
    if (!fixed_.empty()) return std::string(fixed_);
    return fmt::format("{}:{}", name_, std::max(node.Mark().line, 0) + 1);
  }

  Result<Value> convert_list(const YAML::Node& node, int depth, Value value) {
    value.kind = Value::Kind::list;
    for (const auto& item : node) {
      INGOT_ASSIGN(Value converted, convert(item, depth + 1));
      value.items.push_back(std::move(converted));
    }
    return value;
  }

  Result<Value> convert_map(const YAML::Node& node, int depth, Value value) {
    value.kind = Value::Kind::map;
    for (const auto& item : node) {
      if (!item.first.IsScalar()) return usage_error("{}: a key must be a name", origin(item.first));
      Entry entry{item.first.Scalar(), origin(item.first), {}};
      const auto same = std::find_if(value.entries.begin(), value.entries.end(),
                                     [&](const Entry& other) { return other.key == entry.key; });
      if (same != value.entries.end())
        return usage_error("{}: the key '{}' is given twice, first at {}: keep one of them", entry.origin, entry.key,
                           same->origin);
      INGOT_ASSIGN(entry.value, convert(item.second, depth + 1));
      value.entries.push_back(std::move(entry));
    }
    return value;
  }

  std::string_view name_, fixed_;
  int values_ = 0;
};

std::string_view hint(const std::string& problem) {
  if (problem.find("anchor") != std::string::npos)
    return " (a value that begins with * must stand in quotes: \"*.txt\")";
  if (problem.find("tab") != std::string::npos) return " (indent with spaces)";
  return "";
}

// Where the first two documents of a text begin. YAML::LoadAll cannot be asked for their number: on a text such as ","
// it finds empty documents without end.
class DocumentStarts : public YAML::EventHandler {
 public:
  explicit DocumentStarts(const std::string& source) {
    std::istringstream stream(source);
    YAML::Parser parser(stream);
    while (lines.size() < 2 && parser.HandleNextDocument(*this)) {
    }
  }

  std::vector<int> lines;  // from 0

 private:
  void OnDocumentStart(const YAML::Mark& mark) override { lines.push_back(std::max(mark.line, 0)); }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t, const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {}
  void OnMapEnd() override {}
};

Result<Value> parse(std::string_view text, std::string_view name, std::string_view fixed) {
  const auto at = [&](int line) { return fixed.empty() ? fmt::format("{}:{}", name, line + 1) : std::string(fixed); };
  // The library passes such bytes and writes them as U+FFFD: another path than the one that was given.
  if (const size_t end = valid_utf8_end(text, 0); end != text.size())
    return usage_error("{}: the byte {:#04x} is not UTF-8: save the text as UTF-8",
                       at(static_cast<int>(std::count(text.begin(), text.begin() + static_cast<ptrdiff_t>(end), '\n'))),
                       static_cast<unsigned char>(text[end]));
  try {
    const std::string source(text);
    const DocumentStarts starts(source);
    if (starts.lines.size() > 1)
      return usage_error(
          "{}: what stands before this line is complete: expected one YAML document, found the start of another",
          at(starts.lines[1]));
    if (starts.lines.empty()) {
      Value nothing;
      nothing.origin = at(0);
      return nothing;
    }
    return Converter(name, fixed).convert(YAML::Load(source));
  } catch (const YAML::Exception& problem) {
    return usage_error("{}: not valid YAML: {}{}", at(std::max(problem.mark.line, 0)), problem.msg, hint(problem.msg));
  } catch (const std::exception& problem) {
    return usage_error("{}: not valid YAML: {}", at(0), problem.what());
  }
}

bool plain(const Value& value) {
  return value.kind == Value::Kind::scalar && !value.quoted;
}

std::string_view without_plus(std::string_view text) {
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  return text;
}

std::optional<int64_t> parse_integer(std::string_view text) {
  int base = 10;
  if (text.starts_with("0x")) base = 16;
  if (text.starts_with("0o")) base = 8;
  text = base == 10 ? without_plus(text) : text.substr(2);
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  if (base != 10 && text[0] == '-') return std::nullopt;
  return number;
}

std::optional<double> special_real(std::string_view text) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (std::string_view word : {".nan", ".NaN", ".NAN"})
    if (text == word) return std::numeric_limits<double>::quiet_NaN();
  const bool negative = text.starts_with("-");
  if (negative || text.starts_with("+")) text.remove_prefix(1);
  for (std::string_view word : {".inf", ".Inf", ".INF"})
    if (text == word) return negative ? -kInfinity : kInfinity;
  return std::nullopt;
}

std::optional<double> parse_real(std::string_view text) {
  if (const auto special = special_real(text)) return special;
  text = without_plus(text);
  if (text.find_first_of("0123456789") == std::string_view::npos) return std::nullopt;
  if (text.find_first_not_of("0123456789+-.eE") != std::string_view::npos) return std::nullopt;
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (end != text.data() + text.size()) return std::nullopt;
  if (error == std::errc::result_out_of_range) {  // too large or too small; from_chars does not say which
    const size_t exponent = text.find_first_of("eE");
    const bool tiny = exponent != std::string_view::npos && text.substr(exponent + 1).starts_with("-");
    return tiny ? 0.0 : std::numeric_limits<double>::infinity();
  }
  return error == std::errc() ? std::optional(number) : std::nullopt;
}

std::optional<nlohmann::ordered_json> json_scalar(const Value& value) {
  if (const auto flag = as_bool(value)) return *flag;
  if (const auto number = plain(value) ? parse_integer(value.text) : std::nullopt) return *number;
  const auto number = as_real(value);
  if (!number) return value.text;
  if (!std::isfinite(*number)) return std::nullopt;
  return *number;
}

std::optional<nlohmann::ordered_json> json_value(const Value& value) {
  switch (value.kind) {
    case Value::Kind::null:
      return nlohmann::ordered_json(nullptr);
    case Value::Kind::scalar:
      return json_scalar(value);
    case Value::Kind::list: {
      auto list = nlohmann::ordered_json::array();
      for (const Value& item : value.items) {
        auto converted = json_value(item);
        if (!converted) return std::nullopt;
        list.push_back(std::move(*converted));
      }
      return list;
    }
    case Value::Kind::map: {
      auto object = nlohmann::ordered_json::object();
      for (const Entry& entry : value.entries) {
        auto converted = json_value(entry.value);
        if (!converted) return std::nullopt;
        object[entry.key] = std::move(*converted);
      }
      return object;
    }
  }
  return std::nullopt;
}

std::vector<std::string> split_path(std::string_view path) {
  std::vector<std::string> parts;
  for (size_t begin = 0;;) {
    const size_t dot = path.find('.', begin);
    parts.emplace_back(path.substr(begin, dot - begin));
    if (dot == std::string_view::npos) return parts;
    begin = dot + 1;
  }
}

Result<Value*> list_item(Value& list, const std::string& part, const std::string& origin) {
  size_t index = 0;
  const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), index);
  if (error != std::errc() || end != part.data() + part.size())
    return usage_error("{}: '{}' stands where the index of a list is expected (0, 1, …)", origin, part);
  if (index > list.items.size())
    return usage_error("{}: index {} in a list of {}: expected at most {}, which appends", origin, index,
                       list.items.size(), list.items.size());
  if (index == list.items.size()) {
    list.items.emplace_back();
    list.items.back().origin = origin;
  }
  return &list.items[index];
}

Value* map_item(Value& map, const std::string& part, const std::string& origin) {
  map.kind = Value::Kind::map;
  const auto found =
      std::find_if(map.entries.begin(), map.entries.end(), [&](const Entry& entry) { return entry.key == part; });
  if (found != map.entries.end()) return &found->value;
  map.entries.push_back({part, origin, {}});
  map.entries.back().value.origin = origin;
  return &map.entries.back().value;
}

bool is_index(const std::string& part) {
  return !part.empty() && part.find_first_not_of("0123456789") == std::string::npos;
}

}  // namespace

Result<Value> parse_yaml(std::string_view text, std::string_view name) {
  return parse(text, name, "");
}

Status apply_override(Value& root, const std::string& text) {
  const std::string origin = fmt::format("override \"{}\"", text);
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0)
    return usage_error("{}: expected key=value, such as optimizer.learning_rate=3e-4", origin);
  const std::vector<std::string> parts = split_path(std::string_view(text).substr(0, equals));
  Value* at = &root;
  for (const std::string& part : parts) {
    if (part.empty()) return usage_error("{}: an empty name in the key '{}'", origin, text.substr(0, equals));
    if (at->kind == Value::Kind::scalar)
      return usage_error("{}: there is no '{}' in {} ({}): set the whole section instead", origin, part, describe(*at),
                         at->origin);
    if (at->kind == Value::Kind::null && is_index(part)) at->kind = Value::Kind::list;
    if (at->kind != Value::Kind::list) {
      at = map_item(*at, part, origin);
      continue;
    }
    INGOT_ASSIGN(at, list_item(*at, part, origin));
  }
  const std::string_view value = std::string_view(text).substr(equals + 1);
  if (value.starts_with('*')) {  // no override holds an anchor, so this can be no alias: it is a pattern
    *at = {Value::Kind::scalar, true, std::string(value), origin, {}, {}};
    return {};
  }
  INGOT_ASSIGN(*at, parse(value, "", origin));
  return {};
}

std::optional<bool> as_bool(const Value& value) {
  if (!plain(value)) return std::nullopt;
  for (std::string_view word : {"true", "True", "TRUE"})
    if (value.text == word) return true;
  for (std::string_view word : {"false", "False", "FALSE"})
    if (value.text == word) return false;
  return std::nullopt;
}

std::optional<int64_t> as_integer(const Value& value) {
  if (!plain(value)) return std::nullopt;
  if (const auto number = parse_integer(value.text)) return number;
  if (value.text.find_first_of("eE") == std::string::npos) return std::nullopt;
  const auto real = parse_real(value.text);
  if (!real || std::abs(*real) > 0x1p53 || *real != std::trunc(*real)) return std::nullopt;
  return static_cast<int64_t>(*real);
}

std::optional<double> as_real(const Value& value) {
  if (!plain(value)) return std::nullopt;
  if (const auto number = parse_real(value.text)) return number;
  if (const auto number = parse_integer(value.text)) return static_cast<double>(*number);
  return std::nullopt;
}

bool is_number(const Value& value) {
  return as_real(value).has_value();
}

std::optional<std::string> as_string(const Value& value) {
  if (value.kind != Value::Kind::scalar) return std::nullopt;
  if (!value.quoted && (as_bool(value) || is_number(value))) return std::nullopt;
  return value.text;
}

std::string describe(const Value& value) {
  constexpr size_t kLongest = 60;
  switch (value.kind) {
    case Value::Kind::null:
      return "nothing (null)";
    case Value::Kind::list:
      return value.items.empty() ? "an empty list" : fmt::format("a list of {}", value.items.size());
    case Value::Kind::map:
      return value.entries.empty() ? "an empty section"
                                   : fmt::format("a section with the key '{}'", value.entries[0].key);
    case Value::Kind::scalar:
      break;
  }
  const std::string text = value.text.size() > kLongest ? value.text.substr(0, kLongest) + "…" : value.text;
  return as_bool(value) || is_number(value) ? text : fmt::format("the string \"{}\"", text);
}

std::optional<std::string> as_json(const Value& value) {
  const auto json = json_value(value);
  if (!json) return std::nullopt;
  return json->dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before_last(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  std::iota(last.begin(), last.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({row[j - 1] + 1, last[j] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
    before_last = std::exchange(last, row);
  }
  return last[b.size()];
}

}  // namespace ingot::config
