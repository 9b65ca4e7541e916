// transpose(x): the axes in another order; output axis i is input axis permutation[i].
#pragma once

#include "graph/builder.h"

namespace ingot {

struct TransposeAttributes {
  std::vector<int64_t> permutation;
  static constexpr auto fields = std::tuple(field("permutation", &TransposeAttributes::permutation));
  bool operator==(const TransposeAttributes&) const = default;
};

extern const OpDef kTranspose;
// Returns x itself for the identity.
ValueId transpose(Builder& builder, ValueId x, std::vector<int64_t> permutation);

}  // namespace ingot
