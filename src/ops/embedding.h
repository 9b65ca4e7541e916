// embedding(table [V,C], ids i32 [...]) -> [...,C]: row ids[...] of the table. Ids are in [0, V).
#pragma once

#include "graph/builder.h"

namespace ingot {

extern const OpDef kEmbedding;
ValueId embedding(Builder& builder, ValueId table, ValueId ids);

}  // namespace ingot
