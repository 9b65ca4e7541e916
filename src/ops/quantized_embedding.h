// quantized_embedding(values i8 [V,C], scales f32 [V,G], ids i32 [...]) -> f32 [...,C]: the rows ids[...] of a table
// that is kept as quantized_linear's weight. Ids are in [0, V). For generation; no gradient.
#pragma once

#include "ops/quantized_linear.h"

namespace ingot {

extern const OpDef kQuantizedEmbedding;

}  // namespace ingot
