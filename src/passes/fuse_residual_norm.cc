#include "passes/fuse_residual_norm.h"

#include "ops/add.h"
#include "ops/cast.h"
#include "ops/dropout.h"
#include "ops/layer_norm.h"
#include "ops/layer_norm_grad.h"
#include "ops/residual_layer_norm.h"
#include "ops/residual_rms_norm.h"
#include "ops/rms_norm.h"
#include "ops/rms_norm_grad.h"
#include "passes/rewriter.h"

namespace ingot {
namespace {

// One kind of norm: its ops and how their attributes become the fused ones'.
struct NormKind {
  const OpDef &norm, &residual_norm, &gradient;
  Attributes (*fused)(const Attributes& norm, const DropoutAttributes& dropout);
  // The gradient's attributes with a residual; nullopt where it has one already.
  std::optional<Attributes> (*with_residual)(const Attributes& gradient);
};

template <class GradAttributes>
std::optional<Attributes> with_residual(const Attributes& gradient) {
  GradAttributes attributes = gradient.as<GradAttributes>();
  if (attributes.has_residual) return std::nullopt;
  attributes.has_residual = true;
  return Attributes(std::move(attributes));
}

Attributes fused_layer_norm(const Attributes& norm, const DropoutAttributes& dropout) {
  const auto& a = norm.as<LayerNormAttributes>();
  return ResidualLayerNormAttributes{a.axes, a.eps, a.has_weight, a.has_bias, dropout.p, dropout.stream};
}
Attributes fused_rms_norm(const Attributes& norm, const DropoutAttributes& dropout) {
  const auto& a = norm.as<RmsNormAttributes>();
  return ResidualRmsNormAttributes{a.eps, a.has_weight, dropout.p, dropout.stream};
}

std::span<const NormKind> norm_kinds() {
  static const NormKind kKinds[] = {
      {kLayerNorm, kResidualLayerNorm, kLayerNormGrad, fused_layer_norm, with_residual<LayerNormGradAttributes>},
      {kRmsNorm, kResidualRmsNorm, kRmsNormGrad, fused_rms_norm, with_residual<RmsNormGradAttributes>},
  };
  return kKinds;
}

// The two terms of a sum: what goes on, and what is added to it, before dropout.
struct Residual {
  ValueId x = kNone, delta = kNone;
  DropoutAttributes dropout = {};
};

// The term that dropout was applied to is the added one; else the one that is computed last.
Residual match_residual(const Rewriter& rewriter, NodeId add) {
  const auto& inputs = rewriter.node(add).inputs;
  for (size_t i : {size_t{1}, size_t{0}}) {
    const NodeId dropout = rewriter.producer(inputs[i], kDropout);
    if (dropout != kNone && rewriter.only_reader(inputs[i]) == add)
      return {inputs[1 - i], rewriter.node(dropout).inputs[0],
              rewriter.node(dropout).attributes.as<DropoutAttributes>()};
  }
  const auto place = [&](ValueId id) {
    return rewriter.producer(id) == kNone ? int64_t{-1} : rewriter.position(rewriter.producer(id));
  };
  const size_t last = place(inputs[0]) > place(inputs[1]) ? 0 : 1;
  return {inputs[1 - last], inputs[last], {}};
}

// What a sum is before it is rounded to how it is stored, where only that rounding reads it.
ValueId unrounded(const Rewriter& rewriter, ValueId sum) {
  const NodeId cast = rewriter.producer(sum, kCast);
  if (cast == kNone) return sum;
  const ValueId wide = rewriter.node(cast).inputs[0];
  return rewriter.type(wide).dtype == DType::f32 && rewriter.only_reader(wide) == cast ? wide : sum;
}

bool fuse_forward(Rewriter& rewriter, PassContext& context, const NormKind& kind, NodeId id) {
  const Node norm = rewriter.node(id);
  const ValueId sum = norm.inputs[0];
  const NodeId add = rewriter.producer(unrounded(rewriter, sum), kAdd);
  if (add == kNone) return false;
  for (ValueId term : rewriter.node(add).inputs)
    if (!(rewriter.shape(term) == rewriter.shape(sum))) {
      context.missed(kind.residual_norm.name, norm.path, "a term of the sum is broadcast");
      return false;
    }
  for (size_t i = 1; i < norm.inputs.size(); ++i)
    if (rewriter.depends_on(norm.inputs[i], add)) {
      context.missed(kind.residual_norm.name, norm.path, "the norm's weights depend on the sum");
      return false;
    }
  if (!context.allowed(kind.residual_norm.name, norm.path)) return false;
  const Residual residual = match_residual(rewriter, add);
  std::vector<ValueId> inputs{residual.x, residual.delta};
  inputs.insert(inputs.end(), norm.inputs.begin() + 1, norm.inputs.end());
  const NodeId fused =
      rewriter.insert(kind.residual_norm, std::move(inputs), kind.fused(norm.attributes, residual.dropout), add);
  rewriter.graph().node(fused).path = norm.path;
  rewriter.graph().value(rewriter.node(fused).outputs[0]).type = rewriter.type(sum);
  rewriter.replace(sum, rewriter.node(fused).outputs[0]);
  for (size_t i = 0; i < norm.outputs.size(); ++i)
    rewriter.replace(norm.outputs[i], rewriter.node(fused).outputs[i + 1]);
  context.applied(kind.residual_norm.name, norm.path);
  return true;
}

bool fuse_backward(Rewriter& rewriter, PassContext& context, const NormKind& kind, NodeId id) {
  const Node gradient = rewriter.node(id);
  const ValueId dx = gradient.outputs[0];
  const NodeId add = rewriter.only_reader(dx);
  const auto attributes = kind.with_residual(gradient.attributes);
  if (!rewriter.is(add, kAdd) || !attributes.has_value()) return false;
  const auto& terms = rewriter.node(add).inputs;
  const ValueId residual = terms[0] == dx ? terms[1] : terms[0];
  if (residual == dx || !(rewriter.shape(residual) == rewriter.shape(dx))) return false;
  if (rewriter.depends_on(residual, id)) {
    context.missed(kind.gradient.name, gradient.path, "the other gradient is computed later");
    return false;
  }
  if (!context.allowed(kind.gradient.name, gradient.path)) return false;
  auto inputs = gradient.inputs;
  inputs.push_back(residual);
  const NodeId fused = rewriter.insert(kind.gradient, std::move(inputs), *attributes, id);
  rewriter.replace(rewriter.node(add).outputs[0], rewriter.node(fused).outputs[0]);
  for (size_t i = 1; i < gradient.outputs.size(); ++i)
    rewriter.replace(gradient.outputs[i], rewriter.node(fused).outputs[i]);
  context.applied(kind.gradient.name, gradient.path);
  return true;
}

bool fuse(Rewriter& rewriter, PassContext& context, NodeId id) {
  for (const NormKind& kind : norm_kinds()) {
    if (rewriter.is(id, kind.norm)) return fuse_forward(rewriter, context, kind, id);
    if (rewriter.is(id, kind.gradient)) return fuse_backward(rewriter, context, kind, id);
  }
  return false;
}

}  // namespace

bool fuse_residual_norm(Graph& graph, PassContext& context) {
  Rewriter rewriter(graph);
  bool changed = false;
  for (NodeId id : rewriter.schedule()) {
    if (!rewriter.live(id) || !fuse(rewriter, context, id)) continue;
    rewriter.refresh();
    changed = true;
  }
  return changed;
}

}  // namespace ingot
