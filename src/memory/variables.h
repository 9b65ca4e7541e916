// Variables: the tensors that live from run to run (weights, optimizer state, gradients, caches), each at a fixed
// offset of one persistent segment that all programs of a run share.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"

namespace ingot {

inline constexpr int64_t kAlignment = 64;  // bytes; a cache line and the widest vector

constexpr int64_t align_up(int64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

struct Variable {
  std::string name;
  Type type;
  int64_t offset = 0;  // bytes into the persistent segment
};

class VariableLayout {
 public:
  // Adds a variable behind those so far, at an aligned offset. Names are unique; the same name with the same type twice
  // is one.
  void add(const std::string& name, const Type& type);
  // Adds several without a gap between them where their sizes allow it, so that their concatenation along the first
  // axis is one tensor. Those that are there already stay where they are.
  void add_together(const std::vector<std::pair<std::string, Type>>& group);

  const Variable* find(std::string_view name) const;
  const std::vector<Variable>& variables() const { return variables_; }
  int64_t bytes() const { return align_up(bytes_); }

 private:
  void place(const std::string& name, const Type& type, int64_t offset);
  std::vector<Variable> variables_;
  std::map<std::string, size_t, std::less<>> index_;
  int64_t bytes_ = 0;
};

// Adds every parameter and state of a graph, those that one concat along the first axis joins side by side.
void add_variables_of(const Graph& graph, VariableLayout& layout);

}  // namespace ingot
