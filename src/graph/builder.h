// Builder: adds nodes to a graph with inferred types. A shape that does not fit is a bug of the caller (BugError names
// the op, the path and the inputs' types).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "graph/op.h"

namespace ingot {

class Builder {
 public:
  explicit Builder(Graph& graph) : graph_(graph) {}

  Graph& graph() { return graph_; }
  const Type& type(ValueId id) const { return graph_.type(id); }
  const Shape& shape(ValueId id) const { return graph_.shape(id); }

  ValueId parameter(std::string name, Type type) {
    return graph_.add_source(SourceKind::parameter, std::move(name), type);
  }
  ValueId state(std::string name, Type type) { return graph_.add_source(SourceKind::state, std::move(name), type); }
  ValueId input(std::string name, Type type) { return graph_.add_source(SourceKind::input, std::move(name), type); }

  NodeId add_node(const OpDef& op, std::vector<ValueId> inputs, Attributes attributes = {});
  // The same for an op with one output.
  ValueId add(const OpDef& op, std::vector<ValueId> inputs, Attributes attributes = {});
  std::vector<ValueId> add_many(const OpDef& op, std::vector<ValueId> inputs, Attributes attributes = {});

  void output(std::string name, ValueId value) { graph_.outputs.push_back({std::move(name), value}); }
  void store(ValueId variable, ValueId value);

  const std::string& path() const { return path_; }
  // New nodes run as if they stood at this place (Node::order); kNone: after all nodes so far.
  void set_order(int64_t order) { order_ = order; }
  // Nodes added during its life have a path that ends in `.name` (or, with `absolute`, that is `name`).
  class Scope {
   public:
    Scope(Builder& builder, std::string_view name, bool absolute = false);
    ~Scope() { builder_.path_ = std::move(saved_); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Builder& builder_;
    std::string saved_;
  };

 private:
  Graph& graph_;
  std::string path_;
  int64_t order_ = kNone;
};

}  // namespace ingot
