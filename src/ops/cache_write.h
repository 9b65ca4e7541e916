// cache_write(cache, new, start) -> cache': the keys or values of new tokens put into their places. cache is
// [B,Hkv,S,D], new is [B,T,Hkv,D], start is i32[B]: token t of sequence b goes to position start[b] + t. A position
// outside [0, S) is left out.
#pragma once

#include "graph/builder.h"

namespace ingot {

extern const OpDef kCacheWrite;
ValueId cache_write(Builder& builder, ValueId cache, ValueId fresh, ValueId start);

}  // namespace ingot
