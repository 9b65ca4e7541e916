// repeat_interleave(x): each index of one axis repeated `repeats` times in a row (a a b b …).
#pragma once

#include "graph/builder.h"

namespace ingot {

struct RepeatInterleaveAttributes {
  int64_t axis = 0;  // not negative
  int64_t repeats = 1;
  static constexpr auto fields = std::tuple(field("axis", &RepeatInterleaveAttributes::axis),
                                            field("repeats", &RepeatInterleaveAttributes::repeats));
  bool operator==(const RepeatInterleaveAttributes&) const = default;
};

extern const OpDef kRepeatInterleave;
// A negative axis counts from the end. Returns x itself where repeats is 1.
ValueId repeat_interleave(Builder& builder, ValueId x, int axis, int64_t repeats);

}  // namespace ingot
