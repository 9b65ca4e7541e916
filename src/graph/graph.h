// The graph IR: values (static single assignment, each with a type), nodes that compute them, the sources that come
// from outside, and what the program hands back. Nodes are plain values with integer ids; nothing here holds tensor
// memory.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"
#include "base/shape.h"
#include "graph/attributes.h"

namespace ingot {

struct OpDef;  // graph/op.h

using NodeId = int32_t;
using ValueId = int32_t;
inline constexpr int32_t kNone = -1;

// Dense row-major where packed_bytes is 0; otherwise a kernel's own layout of that many bytes, which only the op that
// the packing was made for can read.
struct Type {
  DType dtype = DType::f32;
  Shape shape;
  int64_t packed_bytes = 0;

  int64_t bytes() const {
    return packed_bytes > 0 ? packed_bytes : shape.elements() * static_cast<int64_t>(size_of(dtype));
  }
  bool operator==(const Type&) const = default;
  std::string to_string() const;  // "f32[2,3]", "f32[2,3]:packed(4096)"
};

struct Value {
  Type type;
  NodeId producer = kNone;  // kNone: a source
  int32_t output = 0;       // which of the producer's outputs
};

struct Node {
  const OpDef* op = nullptr;
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  Attributes attributes;
  std::string path;   // where in the model it comes from ("model.layers.3.self_attn"), stable across passes
  int64_t order = 0;  // among nodes whose inputs are ready, the least runs first
  bool dead = false;
};

// parameter: trained weights. state: lives from step to step (optimizer moments, key/value caches, tables).
// input: new in every run (token ids, the loss divisor).
enum class SourceKind { parameter, state, input };

struct Source {
  ValueId value = kNone;
  SourceKind kind = SourceKind::input;
  std::string name;
};

struct Output {
  std::string name;
  ValueId value = kNone;
};

// After the run the parameter or state `variable` holds `value`.
struct Store {
  ValueId variable = kNone;
  ValueId value = kNone;
};

class Graph {
 public:
  std::string name = "graph";

  ValueId add_source(SourceKind kind, std::string source_name, Type type);
  // Adds a node whose output types are given; the builder infers them. `order` kNone: after all nodes so far.
  NodeId add_node(const OpDef& op, std::vector<ValueId> inputs, Attributes attributes, std::vector<Type> output_types,
                  std::string path, int64_t order = kNone);

  const Node& node(NodeId id) const { return nodes_[static_cast<size_t>(id)]; }
  Node& node(NodeId id) { return nodes_[static_cast<size_t>(id)]; }
  const Value& value(ValueId id) const { return values_[static_cast<size_t>(id)]; }
  Value& value(ValueId id) { return values_[static_cast<size_t>(id)]; }
  const Type& type(ValueId id) const { return value(id).type; }
  const Shape& shape(ValueId id) const { return value(id).type.shape; }
  // The node that computes a value, or nullptr for a source.
  const Node* producer(ValueId id) const { return value(id).producer == kNone ? nullptr : &node(value(id).producer); }
  int32_t node_count() const { return static_cast<int32_t>(nodes_.size()); }  // dead ones included
  int32_t value_count() const { return static_cast<int32_t>(values_.size()); }

  const Source* source_of(ValueId id) const;  // nullptr where the value is computed
  const Source* find_source(std::string_view source_name) const;
  ValueId find_output(std::string_view output_name) const;  // kNone where there is none

  std::vector<Source> sources;
  std::vector<Output> outputs;
  std::vector<Store> stores;

  // The live nodes in the order in which they run: topological, by Node::order among those that are ready.
  std::vector<NodeId> schedule() const;

  // For each value the nodes that read it (each once, in schedule order), outputs and stores not counted.
  std::vector<std::vector<NodeId>> readers() const;
  // For each value whether it is an output or is stored.
  std::vector<bool> escapes() const;

  // Every reader, output and store of `old_value` uses `new_value` instead.
  void replace_uses(ValueId old_value, ValueId new_value);
  // Marks dead the nodes from which no output and no store can be reached. True where there were any.
  bool remove_dead_nodes();
  // Sources go that nothing reads, hands back or stores.
  void remove_unread_sources();
  // The same graph with dead nodes and unused values dropped and ids numbered anew in schedule order. Sources all stay.
  Graph compacted() const;

 private:
  std::vector<Node> nodes_;
  std::vector<Value> values_;
};

}  // namespace ingot
