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
#include "runtime/elementwise.h"
#include "runtime/staged_rows.h"
#include "runtime/widening.h"

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

// Rows of a tile such that all its tensors in f32 stay in a second-level cache.
int64_t staged_rows(int64_t n) {
  return rows_a_tile(n, 8192);
}

// What the kernel writes: (sum,) y, (mean,) rstd.
KernelResult forward_kernel(const NodeView& node, ForwardPlan plan) {
  const ValueDtypes dtypes = dtypes_of(node);
  const bool staged = has_narrow_values(node);
  const int64_t n = plan.rows.n, grain = staged ? staged_rows(n) : rows_a_tile(n), buffer = grain * n;
  const auto run = [plan, dtypes, n, grain, buffer](const RunArguments& args) {
    const bool residual = plan.delta != kNone;
    size_t out = 0;
    const auto output = [&] {
      const size_t i = out++;
      return StagedRows(args.outputs[i], dtypes.outputs[i], n);
    };
    const auto input = [&](int i) {
      const auto at = static_cast<size_t>(i);
      return StagedRows(args.inputs[at], dtypes.inputs[at], n);
    };
    const StagedRows x = input(0), delta = input(residual ? plan.delta : 0);
    const StagedRows sum = residual ? output() : x, y = output();
    float* mean = plan.kind == Kind::layer ? args.out(out++) : nullptr;
    float* rstd = args.out(out++);
    NormForward call;
    call.n = n;
    call.eps = plan.eps;
    if (plan.weight != kNone) call.weight = args.in(static_cast<size_t>(plan.weight));
    if (plan.bias != kNone) call.bias = args.in(static_cast<size_t>(plan.bias));
    if (residual) call.sum_stored_as = dtypes.outputs[0];
    if (plan.dropout > 0) {
      const int64_t first = args.random.first_sequence * (plan.rows.rows * n / args.random.batch);
      call.dropout = {{stream_key(args.random.seed, plan.stream), args.random.step, n, first},
                      static_cast<float>(plan.dropout)};
    }
    for_ranges(args, plan.rows.rows, grain, [&](int64_t begin, int64_t end, int thread) {
      auto* buffers = reinterpret_cast<float*>(args.scratch_of(thread));
      const int64_t count = end - begin;
      NormForward mine = call;
      mine.x = x.read(begin, count, buffers);
      if (residual) {
        mine.delta = delta.read(begin, count, buffers + buffer);
        mine.sum = sum.place(begin, buffers + 2 * buffer);
      }
      mine.y = y.place(begin, buffers + 3 * buffer);
      if (mean != nullptr) mine.mean = mean + begin;
      mine.rstd = rstd + begin;
      mine.dropout.stream.first += begin * n;
      plan.kind == Kind::layer ? kernels::layer_norm(mine, 0, count) : kernels::rms_norm(mine, 0, count);
      if (residual) sum.write(begin, count, mine.sum);
      y.write(begin, count, mine.y);
    });
  };
  return make_kernel(run, 0, staged ? 4 * buffer * static_cast<int64_t>(sizeof(float)) : 0);
}

KernelResult bind_layer_norm(const NodeView& node) {
  const auto& a = node.node.attributes.as<LayerNormAttributes>();
  ForwardPlan plan{Kind::layer, rows_of(node.input(0).shape, a.axes), static_cast<float>(a.eps)};
  int next = 1;
  if (a.has_weight) plan.weight = next++;
  if (a.has_bias) plan.bias = next++;
  return forward_kernel(node, std::move(plan));
}

KernelResult bind_rms_norm(const NodeView& node) {
  const auto& a = node.node.attributes.as<RmsNormAttributes>();
  ForwardPlan plan{Kind::rms, rows_of(node.input(0).shape, 1), static_cast<float>(a.eps)};
  if (a.has_weight) plan.weight = 1;
  return forward_kernel(node, std::move(plan));
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
  return forward_kernel(node, std::move(plan));
}

KernelResult bind_residual_rms_norm(const NodeView& node) {
  const auto& a = node.node.attributes.as<ResidualRmsNormAttributes>();
  ForwardPlan plan{Kind::rms, rows_of(node.input(0).shape, 1), static_cast<float>(a.eps)};
  plan.delta = 1;
  if (a.has_weight) plan.weight = 2;
  plan.dropout = a.dropout;
  plan.stream = a.stream;
  return forward_kernel(node, std::move(plan));
}

struct BackwardPlan {
  Kind kind = Kind::layer;
  Rows rows;
  bool has_weight = true, has_bias = false, has_residual = false;
};

// At most so many partial sums, whatever the number of rows: the tiles follow from the shape alone. More where a tile's
// tensors are widened, and should stay in cache.
constexpr int64_t kMostPartials = 64, kMostStagedPartials = 256;

KernelResult backward_kernel(const NodeView& node, BackwardPlan plan) {
  const ValueDtypes dtypes = dtypes_of(node);
  const bool staged = has_narrow_values(node);
  const int64_t n = plan.rows.n, most = staged ? kMostStagedPartials : kMostPartials;
  const int64_t grain = std::max<int64_t>(staged ? staged_rows(n) : rows_a_tile(n), (plan.rows.rows + most - 1) / most);
  const int64_t tiles = (plan.rows.rows + grain - 1) / grain, buffer = grain * n;
  const int64_t sums = (plan.has_weight ? 1 : 0) + (plan.has_bias ? 1 : 0);
  return make_kernel(
      [plan, dtypes, n, grain, tiles, buffer](const RunArguments& args) {
        size_t in = 0, out = 0;
        const auto input = [&] {
          const size_t i = in++;
          return StagedRows(args.inputs[i], dtypes.inputs[i], n);
        };
        const StagedRows x = input();
        const float* weight = plan.has_weight ? args.in(in++) : nullptr;
        const float* mean = plan.kind == Kind::layer ? args.in(in++) : nullptr;
        const float* rstd = args.in(in++);
        const StagedRows dy = input(), residual = plan.has_residual ? input() : dy;
        const StagedRows dx(args.outputs[0], dtypes.outputs[0], n);
        ++out;
        auto* d_weight = reinterpret_cast<float*>(args.temporary);
        float* d_bias = plan.has_weight ? d_weight + tiles * n : d_weight;
        for_ranges(args, plan.rows.rows, grain, [&](int64_t begin, int64_t end, int thread) {
          auto* buffers = reinterpret_cast<float*>(args.scratch_of(thread));
          const int64_t count = end - begin, tile = begin / grain;
          NormBackward mine;
          mine.n = n;
          mine.weight = weight;
          if (mean != nullptr) mine.mean = mean + begin;
          mine.rstd = rstd + begin;
          mine.x = x.read(begin, count, buffers);
          mine.dy = dy.read(begin, count, buffers + buffer);
          if (plan.has_residual) mine.d_residual = residual.read(begin, count, buffers + 2 * buffer);
          mine.dx = dx.place(begin, buffers + 3 * buffer);
          if (plan.has_weight) mine.d_weight = d_weight + tile * n;
          if (plan.has_bias) mine.d_bias = d_bias + tile * n;
          plan.kind == Kind::layer ? kernels::layer_norm_grad(mine, 0, count) : kernels::rms_norm_grad(mine, 0, count);
          dx.write(begin, count, mine.dx);
        });
        const auto add_up = [&](const float* partials, float* total) {
          for_ranges(args, n, 512, [&](int64_t begin, int64_t end, int) {
            kernels::add_partials(partials, tiles, n, begin, end, false, total);
          });
        };
        if (plan.has_weight) add_up(d_weight, args.out(out++));
        if (plan.has_bias) add_up(d_bias, args.out(out++));
      },
      sums * tiles * n * static_cast<int64_t>(sizeof(float)),
      staged ? 4 * buffer * static_cast<int64_t>(sizeof(float)) : 0);
}

KernelResult bind_layer_norm_grad(const NodeView& node) {
  const auto& a = node.node.attributes.as<LayerNormGradAttributes>();
  return backward_kernel(node,
                         {Kind::layer, rows_of(node.input(0).shape, a.axes), a.has_weight, a.has_bias, a.has_residual});
}

KernelResult bind_rms_norm_grad(const NodeView& node) {
  const auto& a = node.node.attributes.as<RmsNormGradAttributes>();
  return backward_kernel(node, {Kind::rms, rows_of(node.input(0).shape, 1), a.has_weight, false, a.has_residual});
}

// Statistics, weights and their gradients are read and written in f32.
bool only_rows_are_narrow(const NodeView& node) {
  const Shape rows = node.input(0).shape;
  for (size_t i = 0; i < node.inputs(); ++i)
    if (is_narrow(node.input(i).dtype) && !(node.input(i).shape == rows)) return false;
  for (size_t i = 0; i < node.outputs(); ++i)
    if (is_narrow(node.output(i).dtype) && !(node.output(i).shape == rows)) return false;
  return true;
}

}  // namespace

std::span<const Binding> norm_bindings() {
  static constexpr Binding kBindings[] = {{"layer_norm", bind_layer_norm, only_rows_are_narrow},
                                          {"layer_norm_grad", bind_layer_norm_grad, only_rows_are_narrow},
                                          {"residual_layer_norm", bind_residual_layer_norm, only_rows_are_narrow},
                                          {"residual_rms_norm", bind_residual_rms_norm, only_rows_are_narrow},
                                          {"rms_norm", bind_rms_norm, only_rows_are_narrow},
                                          {"rms_norm_grad", bind_rms_norm_grad, only_rows_are_narrow}};
  return kBindings;
}

}  // namespace ingot
