// JsonLine: one line of a JSONL file. A JSON parser takes UTF-8 alone, but text with stray bytes must reach a
// byte-level vocabulary unchanged: each such byte travels through the parser as a noncharacter and is put back
// afterwards.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "base/result.h"
#include "data/csv.h"

namespace ingot {

class JsonLine {
 public:
  // ErrorKind::input with the place for what is not one JSON value.
  static Result<JsonLine> parse(std::string_view line, const TextPlace& place);
  JsonLine(JsonLine&&) noexcept;
  JsonLine& operator=(JsonLine&&) noexcept;
  ~JsonLine();

  const nlohmann::json& value() const { return *value_; }
  // Puts the stray bytes back into a string taken from value().
  void restore_bytes(std::string& text) const;

 private:
  JsonLine();
  std::unique_ptr<nlohmann::json> value_;
  bool has_stray_bytes_ = false;
};

}  // namespace ingot
