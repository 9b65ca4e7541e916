#include "passes/fuse_epilogue.h"

#include <algorithm>

#include "ops/linear.h"
#include "ops/matmul.h"
#include "passes/region.h"

namespace ingot {
namespace {

constexpr std::string_view kPattern = "linear";

bool fuse(Rewriter& rewriter, PassContext& context, NodeId id) {
  const Node product = rewriter.node(id);
  const auto flags = product.attributes.as<MatmulAttributes>();
  if (flags.transpose_a || rewriter.shape(product.inputs[1]).rank() != 2) return false;
  const ValueId value = product.outputs[0];
  Region region(rewriter, rewriter.shape(value));
  region.add_base(value);
  const auto readers = region.readers_of(value);
  const auto elementwise = [&](NodeId reader) { return rewriter.node(reader).op->traits.elementwise; };
  if (std::ranges::none_of(readers, elementwise)) return false;
  if (region.escapes(value) || !std::ranges::all_of(readers, elementwise)) {
    context.missed(
        kPattern, product.path,
        region.escapes(value) ? "the product is an output" : "the product is read by other than elementwise ops");
    return false;
  }
  region.take_readers();
  if (region.size() == 0) {
    context.missed(kPattern, product.path, "what reads the product needs values that are not there yet");
    return false;
  }
  if (!context.allowed(kPattern, product.path)) return false;
  const Region::Parts parts = region.build(rewriter, id);
  std::vector<ValueId> inputs = product.inputs;
  inputs.insert(inputs.end(), parts.inputs.begin(), parts.inputs.end());
  const NodeId fused = rewriter.insert(kLinear, std::move(inputs),
                                       LinearAttributes{flags.transpose_b, parts.program, parts.outputs}, id);
  Region::replace(rewriter, parts, fused);
  rewriter.refresh();
  context.applied(kPattern, product.path);
  return true;
}

}  // namespace

bool fuse_epilogue(Graph& graph, PassContext& context) {
  Rewriter rewriter(graph);
  bool changed = false;
  for (NodeId id : rewriter.schedule())
    if (rewriter.live(id) && rewriter.is(id, kMatmul)) changed = fuse(rewriter, context, id) || changed;
  return changed;
}

}  // namespace ingot
