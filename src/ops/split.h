// split(x) -> x0, x1, …: consecutive pieces of the given sizes along one axis, which they fill.
#pragma once

#include "graph/builder.h"

namespace ingot {

struct SplitAttributes {
  int64_t axis = 0;  // not negative
  std::vector<int64_t> sizes;
  static constexpr auto fields =
      std::tuple(field("axis", &SplitAttributes::axis), field("sizes", &SplitAttributes::sizes));
  bool operator==(const SplitAttributes&) const = default;
};

extern const OpDef kSplit;
// A negative axis counts from the end.
std::vector<ValueId> split(Builder& builder, ValueId x, int axis, std::vector<int64_t> sizes);

}  // namespace ingot
