// Internal to text/jinja/.
#pragma once

#include <string_view>

#include "base/result.h"
#include "text/jinja/ast.h"

namespace ingot::jinja {

// Errors are ErrorKind::input and name what is not supported: "SOURCE: line N: …".
Result<Body> parse(std::string_view source, std::string_view source_name);

}  // namespace ingot::jinja
