#include "passes/transpose_weights.h"

#include <algorithm>

#include "ops/matmul.h"
#include "passes/rewriter.h"

namespace ingot {
namespace {

class Transposer {
 public:
  explicit Transposer(Graph& graph) : rewriter_(graph) {}

  bool run() {
    bool changed = false;
    const std::vector<Source> sources = rewriter_.graph().sources;
    for (const Source& source : sources) {
      if (!is_read_by_rows(source)) continue;
      transpose(source);
      changed = true;
    }
    if (!changed) return false;
    rewriter_.graph().remove_dead_nodes();
    rewriter_.graph().remove_unread_sources();
    return true;
  }

 private:
  // Whether nothing but products reads it, and all of them as [inputs, outputs].
  bool is_read_by_rows(const Source& source) const {
    const ValueId weight = source.value;
    if (rewriter_.parameter(weight) == nullptr || rewriter_.shape(weight).rank() != 2 || rewriter_.escapes(weight))
      return false;
    const std::vector<NodeId>& readers = rewriter_.readers(weight);
    return !readers.empty() && std::ranges::all_of(readers, [&](NodeId id) {
      if (!rewriter_.is(id, kMatmul)) return false;
      const Node& node = rewriter_.node(id);
      const auto& flags = node.attributes.as<MatmulAttributes>();
      return node.inputs[0] != weight && !flags.transpose_a && !flags.transpose_b;
    });
  }

  void transpose(const Source& source) {
    const Type type = rewriter_.type(source.value);
    const std::vector<NodeId> readers = rewriter_.readers(source.value);
    const ValueId transposed = rewriter_.graph().add_source(SourceKind::parameter, transposed_name(source.name),
                                                            {type.dtype, {type.shape[1], type.shape[0]}});
    for (const NodeId id : readers) {
      const Node node = rewriter_.node(id);
      auto flags = node.attributes.as<MatmulAttributes>();
      flags.transpose_b = true;
      rewriter_.replace(node.outputs[0], rewriter_.insert_value(kMatmul, {node.inputs[0], transposed}, flags, id));
    }
  }

  Rewriter rewriter_;
};

}  // namespace

bool transpose_weights(Graph& graph, PassContext&) {
  return Transposer(graph).run();
}

}  // namespace ingot
