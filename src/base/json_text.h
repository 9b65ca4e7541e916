// JSON that others wrote, parsed with a bound on its nesting.
#pragma once

#include <cstddef>
#include <string_view>

namespace ingot {

// More than any real file has. The JSON library copies, compares and prints by recursion, which a value nested a
// hundred thousand levels deep (a text of 200 kB) would end with a stack overflow.
constexpr size_t kMostJsonLevels = 256;

// Whether arrays and objects stand in each other deeper than kMostJsonLevels, by the brackets outside of strings. What
// is said of a text that is not JSON holds up to its first fault.
bool nests_too_deep(std::string_view json);

// The value of a text, discarded (is_discarded()) where it is not JSON or nested too deep. Json is nlohmann::json or
// nlohmann::ordered_json.
template <class Json>
Json parse_json(std::string_view text) {
  if (nests_too_deep(text)) return Json(Json::value_t::discarded);
  return Json::parse(text, nullptr, false);
}

}  // namespace ingot
