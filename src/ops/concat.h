// concat(x0, x1, …): tensors joined along one axis; their other extents are equal.
#pragma once

#include "graph/builder.h"

namespace ingot {

struct ConcatAttributes {
  int64_t axis = 0;  // not negative
  static constexpr auto fields = std::tuple(field("axis", &ConcatAttributes::axis));
  bool operator==(const ConcatAttributes&) const = default;
};

extern const OpDef kConcat;
// A negative axis counts from the end. Returns the value itself where there is one alone.
ValueId concat(Builder& builder, std::vector<ValueId> values, int axis);

}  // namespace ingot
