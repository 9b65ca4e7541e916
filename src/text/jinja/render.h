// Runs a parsed template. Internal to text/jinja/.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "text/jinja/ast.h"

namespace ingot::jinja {

// What one run may take at most; more is an error.
struct Limits {
  size_t output = size_t{1} << 26;  // bytes
  int64_t work = 50'000'000;        // nodes that are looked at, and bytes that filters and operators see
  int depth = 1000;                 // of nodes in nodes, macro calls included
  int nested_values = 100;          // lists in lists
};

// `variables`: an object. Errors are ErrorKind::input, with the template's line.
Result<std::string> render(const Body& body, const Json& variables, std::string_view source_name,
                           const Limits& limits = {});

}  // namespace ingot::jinja
