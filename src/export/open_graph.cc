#include "export/open_graph.h"

#include <optional>

#include "ops/reshape.h"

namespace ingot {
namespace {

// Primes whose ratios differ from one to the other, so that the ratio of an extent's two values tells what it follows.
constexpr GraphSizes kFirst{3, 7, 17}, kSecond{5, 13, 41};

std::optional<Extent> extent_of(int64_t first, int64_t second) {
  for (int bits = 0; bits < 8; ++bits) {
    Extent extent{1, (bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0};
    const auto product = [&](const GraphSizes& sizes) {
      return (extent.batch ? sizes.batch : 1) * (extent.tokens ? sizes.tokens : 1) *
             (extent.capacity ? sizes.capacity : 1);
    };
    extent.factor = first / product(kFirst);
    if (extent.factor * product(kFirst) == first && extent.factor * product(kSecond) == second) return extent;
  }
  return std::nullopt;
}

std::optional<Extents> extents_of(const Shape& first, const Shape& second) {
  if (first.rank() != second.rank()) return std::nullopt;
  Extents extents;
  for (int axis = 0; axis < first.rank(); ++axis) {
    const auto extent = extent_of(first[axis], second[axis]);
    if (!extent) return std::nullopt;
    extents.push_back(*extent);
  }
  return extents;
}

std::string place_of(const Graph& graph, ValueId value) {
  const Node* node = graph.producer(value);
  if (node == nullptr) return fmt::format("the source {}", graph.source_of(value)->name);
  return fmt::format("the op {} at {}", node->op->name, node->path);
}

Error other_structure(const std::string& where) {
  return usage_error(
      "{}: the model's graph is another one for other batch sizes and lengths; the export needs one for all", where);
}

bool same_nodes(const Node& a, const Node& b) {
  return a.op == b.op && a.inputs == b.inputs && a.outputs == b.outputs && a.dead == b.dead;
}

Status check_structure(const Graph& a, const Graph& b) {
  if (a.node_count() != b.node_count() || a.value_count() != b.value_count() || a.sources.size() != b.sources.size() ||
      a.outputs.size() != b.outputs.size() || a.stores.size() != b.stores.size())
    return other_structure(a.name);
  for (size_t i = 0; i < a.sources.size(); ++i)
    if (a.sources[i].name != b.sources[i].name || a.sources[i].value != b.sources[i].value)
      return other_structure(a.sources[i].name);
  for (NodeId id = 0; id < a.node_count(); ++id)
    if (!same_nodes(a.node(id), b.node(id)))
      return other_structure(fmt::format("{} at {}", a.node(id).op->name, a.node(id).path));
  for (size_t i = 0; i < a.outputs.size(); ++i)
    if (a.outputs[i].name != b.outputs[i].name || a.outputs[i].value != b.outputs[i].value)
      return other_structure(a.outputs[i].name);
  for (size_t i = 0; i < a.stores.size(); ++i)
    if (a.stores[i].variable != b.stores[i].variable || a.stores[i].value != b.stores[i].value)
      return other_structure(place_of(a, a.stores[i].variable));
  return {};
}

}  // namespace

Result<OpenGraph> OpenGraph::make(const std::function<Graph(const GraphSizes&)>& build) {
  OpenGraph open;
  open.graph_ = build(kFirst);
  const Graph other = build(kSecond);
  const Graph& graph = open.graph_;
  INGOT_TRY(check_structure(graph, other));
  for (ValueId id = 0; id < graph.value_count(); ++id) {
    auto extents = extents_of(graph.shape(id), other.shape(id));
    if (!extents || graph.type(id).dtype != other.type(id).dtype)
      return usage_error(
          "{}: its result's type is {} for {} sequences of {} tokens and {} for {} of {}; the export needs extents "
          "that are fixed, or products of a number with the batch size and the length",
          place_of(graph, id), graph.type(id).to_string(), kFirst.batch, kFirst.tokens, other.type(id).to_string(),
          kSecond.batch, kSecond.tokens);
    open.extents_.push_back(std::move(*extents));
  }
  for (NodeId id = 0; id < graph.node_count(); ++id)
    open.varying_.push_back(!(graph.node(id).attributes == other.node(id).attributes));
  return open;
}

Result<OpenGraph> open_generation_graph(const Model& model) {
  return OpenGraph::make([&](const GraphSizes& sizes) {
    Graph graph;
    graph.name = model.config().model_type;
    Builder builder(graph);
    CachedBuildOptions options;
    options.batch = sizes.batch;
    options.tokens = sizes.tokens;
    options.capacity = sizes.capacity;
    options.all_logits = true;
    model.build_cached(builder, options);
    for (Output& output : graph.outputs) {
      const int64_t vocabulary = builder.shape(output.value)[-1];
      output.value = reshape(builder, output.value, {sizes.batch, sizes.tokens, vocabulary});
    }
    graph.remove_dead_nodes();
    return graph.compacted();
  });
}

}  // namespace ingot
