// Suggestions for misspelt names.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace ingot {

// The one of `known` with the least edit distance to `name` (insertions, deletions, substitutions; the first of
// several); empty where `known` is.
std::string nearest_name(std::string_view name, std::span<const std::string> known);

}  // namespace ingot
