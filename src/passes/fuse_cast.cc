#include "passes/fuse_cast.h"

#include "graph/storage.h"
#include "ops/cast.h"
#include "passes/rewriter.h"

namespace ingot {
namespace {

constexpr std::string_view kPattern = "cast";

bool fuse(Rewriter& rewriter, PassContext& context, NodeId id) {
  const Node cast = rewriter.node(id);
  const ValueId value = cast.inputs[0];
  const NodeId from = rewriter.producer(value);
  const DType narrow = rewriter.type(cast.outputs[0]).dtype;
  if (from == kNone || !is_narrow(narrow) || rewriter.type(value).dtype != DType::f32) return false;
  const OpTraits& traits = rewriter.node(from).op->traits;
  if (traits.elementwise || traits.view || traits.part.has_value() || traits.join.has_value()) return false;
  if (rewriter.only_reader(value) != id || !context.allowed(kPattern, cast.path)) return false;
  rewriter.graph().value(value).type.dtype = narrow;
  rewriter.replace(cast.outputs[0], value);
  context.applied(kPattern, cast.path);
  return true;
}

}  // namespace

bool fuse_cast(Graph& graph, PassContext& context) {
  Rewriter rewriter(graph);
  bool changed = false;
  for (const NodeId id : rewriter.schedule())
    if (rewriter.live(id) && rewriter.is(id, kCast)) changed = fuse(rewriter, context, id) || changed;
  if (changed) rewriter.refresh();
  return changed;
}

}  // namespace ingot
