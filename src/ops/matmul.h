// matmul(a, b): matrix products. a is [..., m, k]; b is [k, n] (one matrix for all: a's leading axes are rows like m)
// or
// [..., k, n] with the same leading axes as a. transpose_a / transpose_b: that operand's last two axes are given
// swapped (transpose_a with a two-dimensional b needs a two-dimensional a). The result is [..., m, n].
#pragma once

#include "graph/builder.h"

namespace ingot {

struct MatmulAttributes {
  bool transpose_a = false;
  bool transpose_b = false;
  static constexpr auto fields = std::tuple(field("transpose_a", &MatmulAttributes::transpose_a),
                                            field("transpose_b", &MatmulAttributes::transpose_b));
  bool operator==(const MatmulAttributes&) const = default;
};

// The extents of one product and how many there are; rows include a's leading axes where b is one matrix.
struct MatmulExtents {
  int64_t batch = 1, rows = 0, k = 0, n = 0;
};
Result<MatmulExtents> matmul_extents(const Shape& a, const Shape& b, const MatmulAttributes& attributes);

extern const OpDef kMatmul;
ValueId matmul(Builder& builder, ValueId a, ValueId b, MatmulAttributes attributes = {});

}  // namespace ingot
