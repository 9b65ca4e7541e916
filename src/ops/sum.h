// sum(x): the sum over some axes, which vanish from the shape (all axes: a scalar).
#pragma once

#include "graph/builder.h"

namespace ingot {

struct SumAttributes {
  std::vector<int64_t> axes;  // ascending, not negative
  static constexpr auto fields = std::tuple(field("axes", &SumAttributes::axes));
  bool operator==(const SumAttributes&) const = default;
};

extern const OpDef kSum;
ValueId sum(Builder& builder, ValueId x, std::vector<int64_t> axes);

}  // namespace ingot
