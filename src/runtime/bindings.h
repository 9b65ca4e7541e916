// The way from ops to kernels: one binding for each op that can run, in one explicit list. A binding looks at types and
// attributes and answers with a kernel, or says why there is none.
#pragma once

#include <span>
#include <string_view>

#include "runtime/kernel.h"

namespace ingot {

struct Binding {
  std::string_view op;
  KernelResult (*bind)(const NodeView& node);
  // Whether its kernels take the node's values as they are stored where some are in 16 bits. Null: never.
  bool (*takes_narrow)(const NodeView& node) = nullptr;
};

// For takes_narrow: whatever its dtypes are.
inline bool takes_any(const NodeView&) {
  return true;
}

// The kernel for a node: by the list, or, for an elementwise op, by its name among the elementwise kernels.
KernelResult bind_node(const NodeView& node);

// Each family's bindings, one file each; bindings.cc joins them.
std::span<const Binding> adafactor_bindings();
std::span<const Binding> attention_bindings();
std::span<const Binding> elementwise_bindings();
std::span<const Binding> embedding_bindings();
std::span<const Binding> loss_bindings();
std::span<const Binding> matmul_bindings();
std::span<const Binding> movement_bindings();
std::span<const Binding> norm_bindings();
std::span<const Binding> optimizer_bindings();
std::span<const Binding> quantized_bindings();
std::span<const Binding> reduction_bindings();

KernelResult bind_elementwise(const NodeView& node);

}  // namespace ingot
