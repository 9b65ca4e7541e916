// cast(x): the same numbers in another dtype; floating-point formats round to nearest even.
#pragma once

#include "graph/builder.h"

namespace ingot {

struct CastAttributes {
  DType dtype = DType::f32;
  static constexpr auto fields = std::tuple(field("dtype", &CastAttributes::dtype));
  bool operator==(const CastAttributes&) const = default;
};

extern const OpDef kCast;
// Returns x itself where it has that dtype.
ValueId cast(Builder& builder, ValueId x, DType dtype);

}  // namespace ingot
