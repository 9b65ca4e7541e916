#include "runtime/bindings.h"

#include "runtime/widening.h"

namespace ingot {
namespace {

struct Family {
  std::string_view name;
  std::span<const Binding> (*bindings)();
};

constexpr Family kFamilies[] = {
    {"adafactor", adafactor_bindings}, {"attention", attention_bindings}, {"elementwise", elementwise_bindings},
    {"embedding", embedding_bindings}, {"loss", loss_bindings},           {"matmul", matmul_bindings},
    {"movement", movement_bindings},   {"norm", norm_bindings},           {"optimizer", optimizer_bindings},
    {"quantized", quantized_bindings}, {"reduction", reduction_bindings},
};

KernelResult named(KernelResult kernel, std::string_view family) {
  if (kernel.ok()) (*kernel)->family = family;
  return kernel;
}

KernelResult bind_as_stored(const NodeView& node, const Binding& binding) {
  const bool as_it_is = !has_narrow_values(node) || (binding.takes_narrow != nullptr && binding.takes_narrow(node));
  return as_it_is ? binding.bind(node) : bind_widened(node, binding.bind);
}

}  // namespace

KernelResult bind_node(const NodeView& node) {
  for (const Family& family : kFamilies)
    for (const Binding& binding : family.bindings())
      if (binding.op == node.node.op->name) return named(bind_as_stored(node, binding), family.name);
  if (node.node.op->traits.elementwise) return named(bind_elementwise(node), "elementwise");
  return failed_error("there is no kernel for the op {} (at \"{}\")", node.node.op->name, node.node.path);
}

}  // namespace ingot
