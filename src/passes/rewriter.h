// Rewriter: what passes share to look around in a graph and to put nodes in the place of others. It keeps who reads
// what and where each node runs, as of the last refresh(). Not thread-safe; the graph must outlive it and be changed
// through it alone.
#pragma once

#include "graph/builder.h"
#include "passes/pass.h"

namespace ingot {

class Rewriter {
 public:
  explicit Rewriter(Graph& graph);

  Graph& graph() { return graph_; }
  const Graph& graph() const { return graph_; }
  const Node& node(NodeId id) const { return graph_.node(id); }
  const Shape& shape(ValueId id) const { return graph_.shape(id); }
  const Type& type(ValueId id) const { return graph_.type(id); }
  bool live(NodeId id) const { return !graph_.node(id).dead; }
  bool is(NodeId id, const OpDef& op) const { return id != kNone && graph_.node(id).op == &op; }
  // The node that computes a value; kNone for a source.
  NodeId producer(ValueId id) const { return graph_.value(id).producer; }
  // The same where it is of that op, else kNone.
  NodeId producer(ValueId id, const OpDef& op) const { return is(producer(id), op) ? producer(id) : kNone; }
  const Source* parameter(ValueId id) const;  // nullptr where the value is no parameter

  // The live nodes in the order in which they ran when the rewriter was made.
  const std::vector<NodeId>& schedule() const { return schedule_; }
  int64_t position(NodeId id) const { return positions_[static_cast<size_t>(id)]; }
  // A node that runs at the position; kNone where none does any more.
  NodeId node_at(int64_t place) const {
    const NodeId id = at_position_[static_cast<size_t>(place)];
    return live(id) ? id : kNone;
  }
  // Each once, in the order of their ids.
  const std::vector<NodeId>& readers(ValueId id) const { return readers_[static_cast<size_t>(id)]; }
  bool escapes(ValueId id) const { return escapes_[static_cast<size_t>(id)]; }  // is an output or stored
  // The node that alone reads a value which does not escape; else kNone.
  NodeId only_reader(ValueId id) const;
  // Whether the value cannot be computed before the node has run.
  bool depends_on(ValueId value, NodeId node) const;

  // A node at the place of another: with its path, and running as near to it as its own inputs allow.
  NodeId insert(const OpDef& op, std::vector<ValueId> inputs, Attributes attributes, NodeId at);
  // The same for an op with one output: its value.
  ValueId insert_value(const OpDef& op, std::vector<ValueId> inputs, Attributes attributes, NodeId at);
  ValueId reshaped(ValueId x, const Shape& shape, NodeId at);  // x itself where it has the shape
  // x with its axes permuted, without a transpose of a transpose; x itself or its source where they cancel out.
  ValueId transposed(ValueId x, std::vector<int64_t> permutation, NodeId at);
  void replace(ValueId old_value, ValueId new_value);
  void set_input(NodeId id, size_t input, ValueId value) { graph_.node(id).inputs[input] = value; }

  // After a rewrite: dead nodes go, readers and places are those of the graph as it is now.
  void refresh();

 private:
  void find_positions();
  void find_readers();

  Graph& graph_;
  std::vector<NodeId> schedule_;
  std::vector<int64_t> positions_;  // by node; nodes that are inserted stand where their place was
  std::vector<NodeId> at_position_;
  std::vector<std::vector<NodeId>> readers_;
  std::vector<bool> escapes_;
  bool moved_ = false;  // a node was inserted behind its place: positions must be found anew
};

}  // namespace ingot
