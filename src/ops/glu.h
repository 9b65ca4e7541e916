// glu(x) = activation(gate) · up, where x is [..., 2I], gate its first half along the last axis and up the second
// (Shazeer, "GLU Variants Improve Transformer", 2020). The result is [..., I].
#pragma once

#include "graph/builder.h"

namespace ingot {

struct GluAttributes {
  std::string activation = "silu";  // silu, gelu, gelu_tanh, relu or sigmoid: the name of the op on the gate
  static constexpr auto fields = std::tuple(field("activation", &GluAttributes::activation));
  bool operator==(const GluAttributes&) const = default;
};

extern const OpDef kGlu;

}  // namespace ingot
