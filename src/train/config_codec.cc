#include "train/config_codec.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

namespace ingot::config {
namespace {

struct Unit {
  std::string_view name;
  double bytes;
};
constexpr Unit kUnits[] = {{"KB", 1e3},     {"MB", 1e6},     {"GB", 1e9},     {"TB", 1e12},
                           {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40}};
constexpr int64_t kMaxBytes = int64_t{1} << 50;

std::optional<int64_t> parse_bytes(const Value& value) {
  if (const auto number = as_integer(value)) return number;
  if (value.kind != Value::Kind::scalar) return std::nullopt;
  const size_t unit_at = value.text.find_first_not_of("0123456789.");
  if (unit_at == std::string::npos || unit_at == 0) return std::nullopt;
  const auto unit = std::find_if(std::begin(kUnits), std::end(kUnits), [&](const Unit& candidate) {
    return std::string_view(value.text).substr(unit_at) == candidate.name;
  });
  Value amount = value;
  amount.quoted = false;
  amount.text = value.text.substr(0, unit_at);
  const auto number = as_real(amount);
  if (unit == std::end(kUnits) || !number || *number * unit->bytes > static_cast<double>(kMaxBytes))
    return std::nullopt;
  return static_cast<int64_t>(*number * unit->bytes);
}

std::string expected_real(const Bounds& bounds) {
  if (!bounds.above_low && !bounds.below_high) return fmt::format("a number from {} to {}", bounds.low, bounds.high);
  return fmt::format("a number {} {} and {} {}", bounds.above_low ? "above" : "of at least", bounds.low,
                     bounds.below_high ? "below" : "at most", bounds.high);
}

bool within(double number, const Bounds& bounds) {  // false for NaN
  const bool low = bounds.above_low ? number > bounds.low : number >= bounds.low;
  return low && (bounds.below_high ? number < bounds.high : number <= bounds.high);
}

bool reads_as_itself(const std::string& text) {
  constexpr std::string_view kSafe = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_/.-+";
  if (text.empty() || text.find_first_not_of(kSafe) != std::string::npos) return false;
  if (std::string_view("-+.").find(text[0]) != std::string_view::npos) return false;
  for (std::string_view word : {"null", "Null", "NULL"})
    if (text == word) return false;
  Value plain;
  plain.kind = Value::Kind::scalar;
  plain.text = text;
  return as_string(plain).has_value();
}

}  // namespace

Codec<bool> boolean() {
  return {"true or false",
          [](const Value& value, bool& target) {
            const auto flag = as_bool(value);
            target = flag.value_or(target);
            return flag.has_value();
          },
          [](const bool& target) { return std::string(target ? "true" : "false"); }};
}

Codec<int64_t> integer(int64_t low, int64_t high) {
  return {fmt::format("a whole number from {} to {}", low, high),
          [=](const Value& value, int64_t& target) {
            const auto number = as_integer(value);
            if (!number || *number < low || *number > high) return false;
            target = *number;
            return true;
          },
          [](const int64_t& target) { return fmt::format("{}", target); }};
}

Codec<int64_t> byte_size() {
  return {fmt::format("a size from 1 to {} bytes, such as 6GB or 512MiB", kMaxBytes),
          [](const Value& value, int64_t& target) {
            const auto number = parse_bytes(value);
            if (!number || *number < 1 || *number > kMaxBytes) return false;
            target = *number;
            return true;
          },
          [](const int64_t& target) { return fmt::format("{}", target); }};
}

Codec<double> real(Bounds bounds) {
  return {expected_real(bounds),
          [=](const Value& value, double& target) {
            const auto number = as_real(value);
            if (!number || !within(*number, bounds)) return false;
            target = *number;
            return true;
          },
          [](const double& target) { return fmt::format("{}", target); }};
}

Codec<std::string> text() {
  return {"a string that is not empty (in quotes where it looks like a number, true or false)",
          [](const Value& value, std::string& target) {
            auto string = as_string(value);
            if (!string || string->empty()) return false;
            target = std::move(*string);
            return true;
          },
          [](const std::string& target) { return yaml_string(target); }};
}

Codec<std::string> word_of(std::span<const std::string_view> words) {
  return {joined(words),
          [=](const Value& value, std::string& target) {
            if (value.kind != Value::Kind::scalar) return false;
            if (std::find(words.begin(), words.end(), value.text) == words.end()) return false;
            target = value.text;
            return true;
          },
          [](const std::string& target) { return target; }};
}

Codec<std::string> json_object() {
  return {"a section whose numbers are finite",
          [](const Value& value, std::string& target) {
            if (value.kind != Value::Kind::map) return false;
            auto json = as_json(value);
            if (!json) return false;
            target = std::move(*json);
            return true;
          },
          [](const std::string& target) { return target; }};
}

std::string yaml_string(const std::string& text) {
  if (reads_as_itself(text)) return text;
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string joined(std::span<const std::string_view> words) {
  std::string line;
  for (size_t i = 0; i < words.size(); ++i) {
    if (i > 0) line += i + 1 == words.size() ? " or " : ", ";
    line += words[i];
  }
  return line;
}

}  // namespace ingot::config
