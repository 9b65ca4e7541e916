// slice(x): the indices [start, stop) of one axis.
#pragma once

#include "graph/builder.h"

namespace ingot {

struct SliceAttributes {
  int64_t axis = 0;  // not negative
  int64_t start = 0;
  int64_t stop = 0;
  static constexpr auto fields =
      std::tuple(field("axis", &SliceAttributes::axis), field("start", &SliceAttributes::start),
                 field("stop", &SliceAttributes::stop));
  bool operator==(const SliceAttributes&) const = default;
};

extern const OpDef kSlice;
// A negative axis counts from the end. Returns x itself where nothing is cut off.
ValueId slice(Builder& builder, ValueId x, int axis, int64_t start, int64_t stop);

}  // namespace ingot
