// Name patterns, as the configuration uses them for tensors, layers and passes ("*embed*", "model.layers.[0-3].*").
#pragma once

#include <string_view>

namespace ingot {

// Does the whole of `name` match `pattern`? `*` is any run of bytes (dots and slashes too), `?` one byte, `[a-c]` one
// of a set, `[!a-c]` one that is not in it; a `[` that is never closed is itself. Everything else is itself, case
// counts. Takes at most pattern.size() * name.size() steps.
bool glob_match(std::string_view pattern, std::string_view name);

}  // namespace ingot
