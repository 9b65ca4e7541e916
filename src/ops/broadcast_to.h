// broadcast_to(x): x repeated along its axes of extent 1 (and new leading axes) to the given shape.
#pragma once

#include "graph/builder.h"

namespace ingot {

struct BroadcastToAttributes {
  std::vector<int64_t> shape;
  static constexpr auto fields = std::tuple(field("shape", &BroadcastToAttributes::shape));
  bool operator==(const BroadcastToAttributes&) const = default;
};

extern const OpDef kBroadcastTo;
// Returns x itself where it already has that shape.
ValueId broadcast_to(Builder& builder, ValueId x, const Shape& shape);

}  // namespace ingot
