// glu_grad(x, dy) -> dx: the gradient of glu, whose attributes it shares. x and dx are [..., 2I], dy is [..., I].
#pragma once

#include "ops/glu.h"

namespace ingot {

extern const OpDef kGluGrad;

}  // namespace ingot
