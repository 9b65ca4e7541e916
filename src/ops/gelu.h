// gelu(x) = x·Φ(x), Φ the normal distribution function, by erf, elementwise (Hendrycks and Gimpel, arXiv:1606.08415).
#pragma once

#include "graph/builder.h"

namespace ingot {

extern const OpDef kGelu;
ValueId gelu(Builder& builder, ValueId x);

}  // namespace ingot
