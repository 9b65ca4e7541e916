#include "data/cursor.h"

#include <nlohmann/json.hpp>
#include <string>

#include "base/hash.h"

namespace ingot {

nlohmann::ordered_json cursor_to_json(const Cursor& cursor) {
  return {{"samples", cursor.samples},
          {"epoch", cursor.epoch},
          {"epoch_samples", cursor.epoch_samples},
          {"data", hash_text(cursor.data)}};
}

Result<Cursor> cursor_from_json(const nlohmann::json& json, std::string_view source_name) {
  if (!json.is_object()) return input_error("{}: the data cursor is not an object", source_name);
  const auto number = [&](const char* key) -> Result<int64_t> {
    const auto found = json.find(key);
    if (found != json.end() && found->is_number_integer() && found->get<int64_t>() >= 0) return found->get<int64_t>();
    return input_error("{}: \"{}\" of the data cursor is missing or wrong; expected a number of at least 0",
                       source_name, key);
  };
  Cursor cursor;
  INGOT_ASSIGN(cursor.samples, number("samples"));
  INGOT_ASSIGN(cursor.epoch, number("epoch"));
  INGOT_ASSIGN(cursor.epoch_samples, number("epoch_samples"));
  const auto data = json.find("data");
  const std::string digits = data != json.end() && data->is_string() ? data->get<std::string>() : "";
  if (digits.size() != 16 || digits.find_first_not_of("0123456789abcdef") != std::string::npos)
    return input_error("{}: \"data\" of the data cursor is missing or wrong; expected 16 hexadecimal digits",
                       source_name);
  cursor.data = std::stoull(digits, nullptr, 16);
  return cursor;
}

}  // namespace ingot
