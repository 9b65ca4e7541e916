// matmul_add(accumulator, a, b) = accumulator + a·b, with matmul's rules and attributes for a and b; the accumulator
// has the product's shape and may be f32 where a and b are not. What weight gradients become when several parts of a
// batch add to one sum.
#pragma once

#include "ops/matmul.h"

namespace ingot {

extern const OpDef kMatmulAdd;

}  // namespace ingot
