#include "passes/fuse_elementwise.h"

#include "ops/cluster.h"
#include "passes/region.h"

namespace ingot {
namespace {

constexpr std::string_view kPattern = "cluster";

bool fuse(Rewriter& rewriter, PassContext& context, NodeId id) {
  const Node seed = rewriter.node(id);
  Region region(rewriter, rewriter.shape(seed.outputs[0]));
  if (!region.try_take(id)) return false;
  for (size_t before = 0; before != region.size();) {
    before = region.size();
    region.take_readers();
    region.take_sources();
  }
  if (region.size() < 2 || !context.allowed(kPattern, seed.path)) return false;
  const Region::Parts parts = region.build(rewriter, id);
  const NodeId fused = rewriter.insert(kCluster, parts.inputs, ClusterAttributes{parts.program, parts.outputs}, id);
  Region::replace(rewriter, parts, fused);
  rewriter.refresh();
  context.applied(kPattern, seed.path);
  return true;
}

}  // namespace

bool fuse_elementwise(Graph& graph, PassContext& context) {
  Rewriter rewriter(graph);
  bool changed = false;
  for (NodeId id : rewriter.schedule())
    if (rewriter.live(id) && rewriter.node(id).op->traits.elementwise) changed = fuse(rewriter, context, id) || changed;
  return changed;
}

}  // namespace ingot
