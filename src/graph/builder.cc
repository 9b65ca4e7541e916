#include "graph/builder.h"

#include <fmt/ranges.h>

namespace ingot {

const Node& GradientContext::op_node() const {
  return builder.graph().node(node);
}

NodeId Builder::add_node(const OpDef& op, std::vector<ValueId> inputs, Attributes attributes) {
  std::vector<Type> types;
  for (ValueId id : inputs) {
    INGOT_CHECK(id >= 0 && id < graph_.value_count(), "{} at {}: input {} is no value of the graph", op.name, path_,
                id);
    types.push_back(graph_.type(id));
  }
  auto outputs = op.infer(types, attributes);
  if (!outputs.ok()) {
    std::vector<std::string> texts;
    for (const Type& type : types) texts.push_back(type.to_string());
    report_bug(__FILE__, __LINE__, "inputs that fit the op",
               fmt::format("{}({}) {} at \"{}\": {}", op.name, fmt::join(texts, ", "), attributes.to_string(), path_,
                           outputs.error().message));
  }
  return graph_.add_node(op, std::move(inputs), std::move(attributes), std::move(*outputs), path_, order_);
}

ValueId Builder::add(const OpDef& op, std::vector<ValueId> inputs, Attributes attributes) {
  const NodeId id = add_node(op, std::move(inputs), std::move(attributes));
  INGOT_CHECK(graph_.node(id).outputs.size() == 1, "{} has {} outputs, one was asked for", op.name,
              graph_.node(id).outputs.size());
  return graph_.node(id).outputs[0];
}

std::vector<ValueId> Builder::add_many(const OpDef& op, std::vector<ValueId> inputs, Attributes attributes) {
  return graph_.node(add_node(op, std::move(inputs), std::move(attributes))).outputs;
}

void Builder::store(ValueId variable, ValueId value) {
  INGOT_CHECK(graph_.type(variable) == graph_.type(value), "a value of type {} stored in a variable of type {}",
              graph_.type(value).to_string(), graph_.type(variable).to_string());
  graph_.stores.push_back({variable, value});
}

Builder::Scope::Scope(Builder& builder, std::string_view name, bool absolute)
    : builder_(builder), saved_(builder.path_) {
  if (absolute || saved_.empty())
    builder_.path_ = name;
  else
    builder_.path_ += fmt::format(".{}", name);
}

}  // namespace ingot
