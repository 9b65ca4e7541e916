#include "passes/quantize_weights.h"

#include <map>

#include "ops/embedding.h"
#include "ops/matmul.h"
#include "ops/quantized_embedding.h"
#include "passes/rewriter.h"

namespace ingot {
namespace {

class Quantizer {
 public:
  explicit Quantizer(Graph& graph) : rewriter_(graph) {}

  bool run() {
    for (const NodeId id : rewriter_.schedule()) quantize_product(id);
    for (const NodeId id : rewriter_.schedule()) quantize_lookup(id);
    rewriter_.graph().remove_dead_nodes();
    if (weights_.empty()) return false;
    rewriter_.graph().remove_unread_sources();
    return true;
  }

 private:
  struct Weight {
    ValueId values = kNone, scales = kNone;
    bool transposed = false;
  };

  // Nothing where the other products read the weight the other way round.
  const Weight* weight(ValueId parameter, bool transposed) {
    const auto [found, is_new] = weights_.try_emplace(parameter);
    if (!is_new) return found->second.transposed == transposed ? &found->second : nullptr;
    const QuantizedName name{rewriter_.parameter(parameter)->name, transposed};
    const Shape shape = rewriter_.shape(parameter);
    const int64_t outputs = shape[transposed ? 1 : 0], inputs = shape[transposed ? 0 : 1];
    Graph& graph = rewriter_.graph();
    found->second = {
        graph.add_source(SourceKind::parameter, name.values(), quantized_values_type(outputs, inputs)),
        graph.add_source(SourceKind::parameter, name.scales(), quantized_scales_type(outputs, inputs, kQuantizedGroup)),
        transposed};
    return &found->second;
  }

  void quantize_product(NodeId id) {
    if (!rewriter_.is(id, kMatmul)) return;
    const Node node = rewriter_.node(id);
    const auto& flags = node.attributes.as<MatmulAttributes>();
    const ValueId parameter = node.inputs[1];
    if (rewriter_.parameter(parameter) == nullptr || rewriter_.shape(parameter).rank() != 2 || flags.transpose_a)
      return;
    const Weight* found = weight(parameter, !flags.transpose_b);
    if (found == nullptr) return;
    const Weight quantized = *found;
    rewriter_.replace(node.outputs[0],
                      rewriter_.insert_value(kQuantizedLinear, {node.inputs[0], quantized.values, quantized.scales},
                                             QuantizedAttributes{kQuantizedGroup}, id));
  }

  void quantize_lookup(NodeId id) {
    if (!rewriter_.is(id, kEmbedding)) return;
    const Node node = rewriter_.node(id);
    const auto found = weights_.find(node.inputs[0]);
    if (found == weights_.end() || found->second.transposed) return;
    rewriter_.replace(
        node.outputs[0],
        rewriter_.insert_value(kQuantizedEmbedding, {found->second.values, found->second.scales, node.inputs[1]},
                               QuantizedAttributes{kQuantizedGroup}, id));
  }

  Rewriter rewriter_;
  std::map<ValueId, Weight> weights_;
};

}  // namespace

std::optional<QuantizedName> parse_quantized_name(std::string_view variable) {
  const std::string_view plain = ".int8", transposed = ".int8.transposed";
  for (const std::string_view ending : {plain, transposed})
    if (variable.ends_with(ending))
      return QuantizedName{std::string(variable.substr(0, variable.size() - ending.size())), ending == transposed};
  return std::nullopt;
}

bool quantize_weights(Graph& graph, PassContext&) {
  return Quantizer(graph).run();
}

}  // namespace ingot
