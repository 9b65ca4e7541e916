// Activation functions by the names that Hugging Face's configurations use.
#pragma once

#include "graph/builder.h"

namespace ingot {

enum class Activation { gelu, gelu_tanh, relu, silu, sigmoid, tanh };

ValueId activate(Builder& builder, Activation activation, ValueId x);

}  // namespace ingot
