// reshape(x): the same elements in row-major order under another shape; no byte moves.
#pragma once

#include "graph/builder.h"

namespace ingot {

struct ReshapeAttributes {
  std::vector<int64_t> shape;
  static constexpr auto fields = std::tuple(field("shape", &ReshapeAttributes::shape));
  bool operator==(const ReshapeAttributes&) const = default;
};

extern const OpDef kReshape;
// Returns x itself where it already has that shape.
ValueId reshape(Builder& builder, ValueId x, const Shape& shape);

}  // namespace ingot
