// Kernels that know f32 alone, on values that are stored in 16 bits: inputs are widened into temporary memory before
// they run, and outputs rounded from there afterwards. What has no kernel of its own for such values runs so.
#pragma once

#include "runtime/kernel.h"

namespace ingot {

// Whether an input or output of the node is stored in 16 bits.
bool has_narrow_values(const NodeView& node);

// `bind` makes the kernel of the node as it is with all of them in f32.
KernelResult bind_widened(const NodeView& node, KernelResult (*bind)(const NodeView& node));

}  // namespace ingot
