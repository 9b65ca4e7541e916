#include "memory/variables.h"

#include "memory/alias.h"

namespace ingot {

void VariableLayout::place(const std::string& name, const Type& type, int64_t offset) {
  index_.emplace(name, variables_.size());
  variables_.push_back({name, type, offset});
  bytes_ = std::max(bytes_, offset + type.bytes());
}

void VariableLayout::add(const std::string& name, const Type& type) {
  if (const Variable* known = find(name)) {
    INGOT_CHECK(known->type == type, "the variable {} is {} and {}", name, known->type.to_string(), type.to_string());
    return;
  }
  place(name, type, align_up(bytes_));
}

void VariableLayout::add_together(const std::vector<std::pair<std::string, Type>>& group) {
  bool first = true;
  for (const auto& [name, type] : group) {
    if (find(name) != nullptr || first)
      add(name, type);
    else
      place(name, type, bytes_);
    first = false;
  }
}

const Variable* VariableLayout::find(std::string_view name) const {
  const auto it = index_.find(name);
  return it == index_.end() ? nullptr : &variables_[it->second];
}

void add_variables_of(const Graph& graph, VariableLayout& layout) {
  for (const auto& group : joined_sources(graph)) {
    std::vector<std::pair<std::string, Type>> together;
    for (ValueId id : group) together.emplace_back(graph.source_of(id)->name, graph.type(id));
    layout.add_together(together);
  }
  for (const Source& source : graph.sources)
    if (source.kind != SourceKind::input) layout.add(source.name, graph.type(source.value));
}

}  // namespace ingot
