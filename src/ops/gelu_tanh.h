// gelu_tanh(x) = x/2·(1 + tanh(√(2/π)·(x + 0.044715·x³))), elementwise: GELU's approximation that GPT-2 uses,
// "gelu_new" and "gelu_pytorch_tanh" in Hugging Face's configurations.
#pragma once

#include "graph/builder.h"

namespace ingot {

extern const OpDef kGeluTanh;
ValueId gelu_tanh(Builder& builder, ValueId x);

}  // namespace ingot
