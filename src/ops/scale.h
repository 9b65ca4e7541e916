// scale(x) = factor · x, elementwise.
#pragma once

#include "graph/builder.h"

namespace ingot {

struct ScaleAttributes {
  double factor = 1;
  static constexpr auto fields = std::tuple(field("factor", &ScaleAttributes::factor));
  bool operator==(const ScaleAttributes&) const = default;
};

extern const OpDef kScale;
ValueId scale(Builder& builder, ValueId x, double factor);

}  // namespace ingot
