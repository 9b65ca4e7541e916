// Mixed precision (Micikevicius et al., "Mixed Precision Training", 2018): what products, attention, activations and
// norms read is stored in bf16 or f16, rounded once where it is computed; weights that products read are read from
// copies, made once per update. Arithmetic is fp32 all over (graph/storage.h); a product of two bf16 operands may run
// on the CPU's bf16 instructions, which sum in fp32 too. Statistics, logits, losses, gradients of parameters, weights
// and optimizer state are stored in fp32.
//
// Where values are rounded follows from the plain ops alone, before recomputation and the fusion of elementwise ops: so
// neither changes a bit, nor does mode eager.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "passes/pass.h"

namespace ingot {

// A row of the one table of precisions: what ops of a kind compute in and how what they read is stored.
struct PrecisionKind {
  std::string_view name;    // as training.fp32_ops names it
  std::string_view what;    // for people
  bool computes_in_fp32;    // in every precision
  bool reads_narrow;        // its operands are stored in 16 bits …
  std::string_view unless;  // … unless training.fp32_ops names this kind
  std::span<const std::string_view> ops;
};
std::span<const PrecisionKind> precision_kinds();
bool reads_narrow(const PrecisionKind& kind, std::span<const std::string> fp32_ops);

// Whether training.fp32_ops is one that can be: kinds of the table, those that always compute in fp32 among them.
Status check_fp32_ops(std::span<const std::string> kinds);

// The state that holds a parameter's copy: "bf16.NAME".
std::string weight_copy_name(DType dtype, std::string_view parameter);
// The parameter that a state of such a name is the copy of; empty where it is none.
std::string_view copied_parameter(std::string_view state);

bool lower_precision(Graph& graph, PassContext& context);

// For each product of the graph that reads an operand in fp32: its path.
std::vector<std::string> products_in_fp32(const Graph& graph);

}  // namespace ingot
