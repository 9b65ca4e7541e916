#include "nn/activation.h"

#include "ops/gelu.h"
#include "ops/gelu_tanh.h"
#include "ops/relu.h"
#include "ops/sigmoid.h"
#include "ops/silu.h"
#include "ops/tanh.h"

namespace ingot {

ValueId activate(Builder& builder, Activation activation, ValueId x) {
  switch (activation) {
    case Activation::gelu:
      return gelu(builder, x);
    case Activation::gelu_tanh:
      return gelu_tanh(builder, x);
    case Activation::relu:
      return relu(builder, x);
    case Activation::silu:
      return silu(builder, x);
    case Activation::sigmoid:
      return sigmoid(builder, x);
    case Activation::tanh:
      return tanh(builder, x);
  }
  report_bug(__FILE__, __LINE__, "a known activation", fmt::format("activation {}", static_cast<int>(activation)));
}

}  // namespace ingot
