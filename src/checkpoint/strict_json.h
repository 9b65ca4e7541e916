// JSON from files that may be damaged or hostile: nesting is bounded and a key that occurs twice in an object is an
// error (libraries differ in which of the two they keep).
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "base/result.h"

namespace ingot {

// The document in `text`. Errors (ErrorKind::input) begin with `where` and say at which byte.
Result<nlohmann::json> parse_strict_json(std::string_view text, const std::string& where, int max_depth = 32);

}  // namespace ingot
