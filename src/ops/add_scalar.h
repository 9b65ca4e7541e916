// add_scalar(x) = x + value, elementwise.
#pragma once

#include "graph/builder.h"

namespace ingot {

struct AddScalarAttributes {
  double value = 0;
  static constexpr auto fields = std::tuple(field("value", &AddScalarAttributes::value));
  bool operator==(const AddScalarAttributes&) const = default;
};

extern const OpDef kAddScalar;
ValueId add_scalar(Builder& builder, ValueId x, double value);

}  // namespace ingot
