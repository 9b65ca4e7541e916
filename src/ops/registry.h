// The one list of all ops. A new op is its pair of files and one line in registry.cc; a test fails for an op whose
// gradient or reference is not covered by examples.
#pragma once

#include <span>
#include <string_view>

#include "graph/op.h"

namespace ingot {

std::span<const OpDef* const> all_ops();
// nullptr where there is none of that name.
const OpDef* find_op(std::string_view name);

}  // namespace ingot
