// Region: elementwise nodes of a graph that are to become one program (ops/program.h), and what they read and give.
// Views between them are seen through: a register is a value's elements in row-major order, whatever its shape.
#pragma once

#include <map>
#include <set>

#include "ops/program.h"
#include "passes/rewriter.h"

namespace ingot {

class Region {
 public:
  // All registers have the elements of `shape`.
  Region(const Rewriter& rewriter, const Shape& shape) : rewriter_(rewriter), shape_(shape) {}

  // A register that the op itself computes (a product); the first ones, before any node is taken.
  void add_base(ValueId value);
  // Takes the node where it may be one instruction more: it is elementwise and as large as the region, no way leads
  // from the region through a node outside to its inputs, and the region need not wait for them longer than what reads
  // its values can. And it is worth it: a value between need not be written any more, or the node runs near the region.
  bool try_take(NodeId id);
  // try_take for everything that reads a value of the region, and again for what reads those.
  void take_readers();
  // Takes nodes that only the region reads.
  void take_sources();

  bool holds_node(NodeId id) const { return nodes_.contains(id); }
  size_t size() const { return nodes_.size(); }
  const std::set<NodeId>& nodes() const { return nodes_; }
  // Nodes other than views that read a value, also through views; whether it is an output or stored, also through
  // views.
  std::vector<NodeId> readers_of(ValueId value) const;
  bool escapes(ValueId value) const;

  struct Parts {
    std::vector<ValueId> inputs;  // without the base; each broadcasts to the shape
    Program program;
    std::vector<int64_t> outputs;  // registers that something outside reads
    std::vector<ValueId> values;   // the values that those registers are
  };
  // Inserts views where an input has another shape than the region.
  Parts build(Rewriter& rewriter, NodeId at) const;
  // The outputs of the fused node in the place of the values.
  static void replace(Rewriter& rewriter, const Parts& parts, NodeId fused);

 private:
  ValueId resolve(ValueId value) const;  // the held value that this is a view of, or the value itself
  bool holds(ValueId value) const { return held_.contains(value); }
  bool fits(NodeId id) const;
  bool fits_as_input(ValueId value, const Shape& shape) const;
  bool in_time(NodeId id) const;
  bool worth_it(NodeId id) const;
  bool reaches(ValueId value) const;
  bool only_read_by(ValueId value, NodeId id) const;
  std::vector<ValueId> outside_inputs() const;

  const Rewriter& rewriter_;
  Shape shape_;
  std::vector<ValueId> base_;
  std::set<NodeId> nodes_;
  std::set<ValueId> held_;  // base_ and the nodes' outputs
};

}  // namespace ingot
