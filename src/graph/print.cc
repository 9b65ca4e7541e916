#include <fmt/ranges.h>

#include "graph/text.h"

namespace ingot {
namespace {

std::string_view kind_name(SourceKind kind) {
  switch (kind) {
    case SourceKind::parameter:
      return "parameter";
    case SourceKind::state:
      return "state";
    case SourceKind::input:
      return "input";
  }
  return "?";
}

std::string ids(const std::vector<ValueId>& values) {
  std::string text;
  for (ValueId id : values) text += fmt::format("{}%{}", text.empty() ? "" : ", ", id);
  return text;
}

}  // namespace

std::string print_graph(const Graph& original) {
  const Graph graph = original.compacted();
  std::string out = fmt::format("graph {}\n", attribute_text::quote(graph.name));
  for (const Source& source : graph.sources)
    out += fmt::format("%{} = {} {} : {}\n", source.value, kind_name(source.kind), attribute_text::quote(source.name),
                       graph.type(source.value).to_string());
  for (NodeId id : graph.schedule()) {
    const Node& node = graph.node(id);
    std::vector<std::string> types;
    for (ValueId output : node.outputs) types.push_back(graph.type(output).to_string());
    const std::string attributes = node.attributes.to_string();
    out += fmt::format("{} = {}({}){}{} : {}", ids(node.outputs), node.op->name, ids(node.inputs),
                       attributes == "{}" ? "" : " ", attributes == "{}" ? "" : attributes, fmt::join(types, ", "));
    if (!node.path.empty()) out += fmt::format(" @{}", attribute_text::quote(node.path));
    out += '\n';
  }
  for (const Output& output : graph.outputs)
    out += fmt::format("output {} = %{}\n", attribute_text::quote(output.name), output.value);
  for (const Store& store : graph.stores) out += fmt::format("store %{} = %{}\n", store.variable, store.value);
  return out;
}

}  // namespace ingot
