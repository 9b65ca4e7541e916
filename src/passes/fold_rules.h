// The rules of the fold pass. Each looks at one node and gives the value that may stand for its output 0, or kNone.
#pragma once

#include <optional>

#include "passes/rewriter.h"

namespace ingot {

struct FoldRule {
  const OpDef* op = nullptr;  // the op it looks at; nullptr: any
  ValueId (*apply)(Rewriter& rewriter, NodeId id) = nullptr;
};
std::span<const FoldRule> arithmetic_rules();  // neutral elements, constants, dropout of nothing
std::span<const FoldRule> layout_rules();      // views, transposes, broadcasts, parts and joins

// The one value of all elements, where x is such a constant.
std::optional<double> uniform_constant(const Rewriter& rewriter, ValueId x);

}  // namespace ingot
