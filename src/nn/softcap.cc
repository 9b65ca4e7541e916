#include "nn/softcap.h"

#include "ops/scale.h"
#include "ops/tanh.h"

namespace ingot {

ValueId softcap(Builder& builder, ValueId x, double cap) {
  if (cap == 0) return x;
  return scale(builder, tanh(builder, scale(builder, x, 1 / cap)), cap);
}

}  // namespace ingot
