// linear(x, w, extra…) -> outputs: a matrix product with an elementwise program around it, tile by tile while the tile
// is in cache. Register 0 is x·w (x is [..., k], w is [k, n], or [n, k] with transpose_b), registers 1… are the extra
// inputs broadcast to [..., n], then the instructions' results. Each listed register is an output of that shape.
//
// Forward it is a layer's product with bias, activation or residual; backward the product with the weights and the
// activation's gradient.
#pragma once

#include "graph/builder.h"
#include "ops/program.h"

namespace ingot {

struct LinearAttributes {
  bool transpose_b = false;
  Program program;
  std::vector<int64_t> outputs = {0};
  static constexpr auto fields =
      std::tuple(field("transpose_b", &LinearAttributes::transpose_b), field("program", &LinearAttributes::program),
                 field("outputs", &LinearAttributes::outputs));
  bool operator==(const LinearAttributes&) const = default;
};

extern const OpDef kLinear;

}  // namespace ingot
