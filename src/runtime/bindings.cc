#include "runtime/bindings.h"

namespace ingot {

KernelResult bind_node(const NodeView& node) {
  for (const auto& family :
       {attention_bindings(), elementwise_bindings(), embedding_bindings(), loss_bindings(), matmul_bindings(),
        movement_bindings(), norm_bindings(), optimizer_bindings(), quantized_bindings(), reduction_bindings()})
    for (const Binding& binding : family)
      if (binding.op == node.node.op->name) return binding.bind(node);
  if (node.node.op->traits.elementwise) return bind_elementwise(node);
  return failed_error("there is no kernel for the op {} (at \"{}\")", node.node.op->name, node.node.path);
}

}  // namespace ingot
