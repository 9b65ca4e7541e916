// Dropout whose stream is named after the place where it stands.
#pragma once

#include <string_view>

#include "graph/builder.h"

namespace ingot {

// The stream is the builder's path and `name`, once in a graph: a second dropout of that stream would drop the same
// elements. x itself where p is 0.
ValueId named_dropout(Builder& builder, ValueId x, double p, std::string_view name);

}  // namespace ingot
