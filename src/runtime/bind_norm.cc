// Layer norm and RMS norm, with the residual before them, and their gradients: tiles of rows; the gradients of weight
// and bias are summed per tile, then over tiles in their order.
#include "base/rng.h"
#include "kernels/norm/norm.h"
#include "kernels/reduce/reduce.h"
#include "ops/layer_norm.h"
#include "ops/layer_norm_grad.h"
#include "ops/residual_layer_norm.h"
#include "ops/residual_rms_norm.h"
#include "ops/rms_norm.h"
#include "ops/rms_norm_grad.h"
#include "runtime/bindings.h"

namespace ingot {
namespace {

using kernels::NormBackward;
using kernels::NormForward;

enum class Kind { layer, rms };

struct Rows {
  int64_t rows = 1, n = 1;
};

Rows rows_of(const Shape& shape, int64_t axes) {
  Rows result;
  for (int i = 0; i < shape.rank(); ++i) (i < shape.rank() - axes ? result.rows : result.n) *= shape[i];
  return result;
}

// Where each optional operand stands; kNone: absent.
struct ForwardPlan {
  Kind kind = Kind::layer;
  Rows rows;
  float eps = 0;
  int weight = kNone, bias = kNone, delta = kNone;
  double dropout = 0;
  std::string stream = {};
};

KernelResult forward_kernel(ForwardPlan plan) {
  return make_kernel([plan = std::move(plan)](const RunArguments& args) {
    NormForward call;
    call.x = args.in(0);
    call.n = plan.rows.n;
    call.eps = plan.eps;
    if (plan.weight != kNone) call.weight = args.in(static_cast<size_t>(plan.weight));
    if (plan.bias != kNone) call.bias = args.in(static_cast<size_t>(plan.bias));
    size_t out = 0;
    if (plan.delta != kNone) {
      call.delta = args.in(static_cast<size_t>(plan.delta));
      call.sum = args.out(out++);
      if (plan.dropout > 0) {
        call.dropout.p = static_cast<float>(plan.dropout);
        const int64_t first = args.random.first_sequence * (plan.rows.rows * plan.rows.n / args.random.batch);
        call.dropout.stream = {stream_key(args.random.seed, plan.stream), args.random.step, plan.rows.n, first};
      }
    }
    call.y = args.out(out++);
    if (plan.kind == Kind::layer) call.mean = args.out(out++);
    call.rstd = args.out(out++);
    for_ranges(args, plan.rows.rows, rows_a_tile(plan.rows.n), [&](int64_t begin, int64_t end, int) {
      plan.kind == Kind::layer ? kernels::layer_norm(call, begin, end) : kernels::rms_norm(call, begin, end);
    });
  });
}

KernelResult bind_layer_norm(const NodeView& node) {
  const auto& a = node.node.attributes.as<LayerNormAttributes>();
  ForwardPlan plan{Kind::layer, rows_of(node.input(0).shape, a.axes), static_cast<float>(a.eps)};
  int next = 1;
  if (a.has_weight) plan.weight = next++;
  if (a.has_bias) plan.bias = next++;
  return forward_kernel(std::move(plan));
}

KernelResult bind_rms_norm(const NodeView& node) {
  const auto& a = node.node.attributes.as<RmsNormAttributes>();
  ForwardPlan plan{Kind::rms, rows_of(node.input(0).shape, 1), static_cast<float>(a.eps)};
  if (a.has_weight) plan.weight = 1;
  return forward_kernel(std::move(plan));
}

KernelResult bind_residual_layer_norm(const NodeView& node) {
  const auto& a = node.node.attributes.as<ResidualLayerNormAttributes>();
  ForwardPlan plan{Kind::layer, rows_of(node.input(0).shape, a.axes), static_cast<float>(a.eps)};
  plan.delta = 1;
  int next = 2;
  if (a.has_weight) plan.weight = next++;
  if (a.has_bias) plan.bias = next++;
  plan.dropout = a.dropout;
  plan.stream = a.stream;
  return forward_kernel(std::move(plan));
}

KernelResult bind_residual_rms_norm(const NodeView& node) {
  const auto& a = node.node.attributes.as<ResidualRmsNormAttributes>();
  ForwardPlan plan{Kind::rms, rows_of(node.input(0).shape, 1), static_cast<float>(a.eps)};
  plan.delta = 1;
  if (a.has_weight) plan.weight = 2;
  plan.dropout = a.dropout;
  plan.stream = a.stream;
  return forward_kernel(std::move(plan));
}

struct BackwardPlan {
  Kind kind = Kind::layer;
  Rows rows;
  bool has_weight = true, has_bias = false, has_residual = false;
};

// At most so many partial sums, whatever the number of rows: the tiles follow from the shape alone.
constexpr int64_t kMostPartials = 64;

KernelResult backward_kernel(BackwardPlan plan) {
  const int64_t grain =
      std::max<int64_t>(rows_a_tile(plan.rows.n), (plan.rows.rows + kMostPartials - 1) / kMostPartials);
  const int64_t tiles = (plan.rows.rows + grain - 1) / grain;
  const int64_t sums = (plan.has_weight ? 1 : 0) + (plan.has_bias ? 1 : 0);
  return make_kernel(
      [plan, grain, tiles](const RunArguments& args) {
        NormBackward call;
        size_t in = 0, out = 0;
        call.x = args.in(in++);
        call.n = plan.rows.n;
        if (plan.has_weight) call.weight = args.in(in++);
        if (plan.kind == Kind::layer) call.mean = args.in(in++);
        call.rstd = args.in(in++);
        call.dy = args.in(in++);
        if (plan.has_residual) call.d_residual = args.in(in++);
        call.dx = args.out(out++);
        auto* d_weight = reinterpret_cast<float*>(args.temporary);
        float* d_bias = plan.has_weight ? d_weight + tiles * plan.rows.n : d_weight;
        for_ranges(args, plan.rows.rows, grain, [&](int64_t begin, int64_t end, int) {
          NormBackward mine = call;
          const int64_t tile = begin / grain;
          if (plan.has_weight) mine.d_weight = d_weight + tile * plan.rows.n;
          if (plan.has_bias) mine.d_bias = d_bias + tile * plan.rows.n;
          plan.kind == Kind::layer ? kernels::layer_norm_grad(mine, begin, end)
                                   : kernels::rms_norm_grad(mine, begin, end);
        });
        const auto add_up = [&](const float* partials, float* total) {
          for_ranges(args, plan.rows.n, 512, [&](int64_t begin, int64_t end, int) {
            kernels::add_partials(partials, tiles, plan.rows.n, begin, end, false, total);
          });
        };
        if (plan.has_weight) add_up(d_weight, args.out(out++));
        if (plan.has_bias) add_up(d_bias, args.out(out++));
      },
      sums * tiles * plan.rows.n * static_cast<int64_t>(sizeof(float)));
}

KernelResult bind_layer_norm_grad(const NodeView& node) {
  const auto& a = node.node.attributes.as<LayerNormGradAttributes>();
  return backward_kernel({Kind::layer, rows_of(node.input(0).shape, a.axes), a.has_weight, a.has_bias, a.has_residual});
}

KernelResult bind_rms_norm_grad(const NodeView& node) {
  const auto& a = node.node.attributes.as<RmsNormGradAttributes>();
  return backward_kernel({Kind::rms, rows_of(node.input(0).shape, 1), a.has_weight, false, a.has_residual});
}

}  // namespace

std::span<const Binding> norm_bindings() {
  static constexpr Binding kBindings[] = {{"layer_norm", bind_layer_norm},
                                          {"layer_norm_grad", bind_layer_norm_grad},
                                          {"residual_layer_norm", bind_residual_layer_norm},
                                          {"residual_rms_norm", bind_residual_rms_norm},
                                          {"rms_norm", bind_rms_norm},
                                          {"rms_norm_grad", bind_rms_norm_grad}};
  return kBindings;
}

}  // namespace ingot
