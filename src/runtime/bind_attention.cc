// Fused attention, forward and backward, on separate q, k, v or on one packed tensor of them; rotary positions; the
// key/value cache.
#include "base/rng.h"
#include "kernels/attention/attention.h"
#include "kernels/attention/cached_attention.h"
#include "ops/attention.h"
#include "ops/attention_packed.h"
#include "ops/cached_attention.h"
#include "runtime/bindings.h"

namespace ingot {
namespace {

using kernels::AttentionBackward;
using kernels::AttentionForward;
using kernels::AttentionInputs;
using kernels::AttentionShape;

// The kernel's shape and where q, k and v begin (elements from their operand's start).
struct AttentionPlan {
  AttentionShape shape;
  bool packed = false;
  int64_t k_offset = 0, v_offset = 0;
  std::string stream;

  size_t mask_input() const { return packed ? 1 : 3; }
  AttentionInputs inputs(const RunArguments& args) const {
    const auto size = static_cast<int64_t>(size_of(shape.qkv));
    AttentionInputs in;
    in.q = args.inputs[0];
    in.k = packed ? args.inputs[0] + k_offset * size : args.inputs[1];
    in.v = packed ? args.inputs[0] + v_offset * size : args.inputs[2];
    in.segment_start = args.in<int32_t>(mask_input());
    in.dropout = {stream_key(args.random.seed, stream), args.random.step, args.random.first_sequence};
    return in;
  }
  kernels::AttentionGradients gradients(const RunArguments& args) const {
    if (!packed) return {args.outputs[0], args.outputs[1], args.outputs[2]};
    const auto size = static_cast<int64_t>(size_of(shape.dq));
    return {args.outputs[0], args.outputs[0] + k_offset * size, args.outputs[0] + v_offset * size};
  }
};

AttentionPlan plan_separate(const NodeView& node) {
  const auto& a = node.node.attributes.as<AttentionAttributes>();
  const Shape &q = node.input(0).shape, &k = node.input(1).shape;
  AttentionPlan plan;
  plan.shape = {.batch = q[0], .tokens = q[1], .heads = q[2], .kv_heads = k[2], .head_dim = q[3]};
  plan.shape.scale = static_cast<float>(a.scale);
  plan.shape.softcap = static_cast<float>(a.softcap);
  plan.shape.dropout_p = static_cast<float>(a.dropout);
  plan.shape.window = a.window;
  plan.shape.qkv = node.input(0).dtype;
  plan.stream = a.stream;
  return plan;
}

AttentionPlan plan_packed(const NodeView& node) {
  const auto& a = node.node.attributes.as<AttentionPackedAttributes>();
  const Shape& qkv = node.input(0).shape;
  AttentionPlan plan;
  plan.shape = {.batch = qkv[0], .tokens = qkv[1], .heads = a.heads, .kv_heads = a.kv_heads, .head_dim = a.head_dim};
  plan.shape.q_row_stride = plan.shape.k_row_stride = plan.shape.v_row_stride = qkv[2];
  plan.shape.scale = static_cast<float>(a.scale);
  plan.shape.softcap = static_cast<float>(a.softcap);
  plan.shape.dropout_p = static_cast<float>(a.dropout);
  plan.shape.window = a.window;
  plan.shape.qkv = node.input(0).dtype;
  plan.packed = true;
  plan.k_offset = a.heads * a.head_dim;
  plan.v_offset = plan.k_offset + a.kv_heads * a.head_dim;
  plan.stream = a.stream;
  return plan;
}

KernelResult forward_kernel(const NodeView& node, AttentionPlan plan) {
  plan.shape.out = node.output(0).dtype;
  INGOT_ASSIGN(auto forward, AttentionForward::create(plan.shape, node.threads));
  const auto scratch = static_cast<int64_t>(forward->scratch_bytes());
  return make_kernel(
      [plan = std::move(plan), forward = std::move(forward)](const RunArguments& args) {
        const AttentionInputs inputs = plan.inputs(args);
        args.pool.run(forward->tiles(), [&](int64_t tile, int thread) {
          forward->run(tile, inputs, args.outputs[0], args.out(1), thread, args.scratch_of(thread));
        });
      },
      0, scratch);
}

KernelResult backward_kernel(const NodeView& node, AttentionPlan plan) {
  plan.shape.out = node.input(plan.mask_input() + 1).dtype;
  plan.shape.dq = node.output(0).dtype;
  plan.shape.dk = node.output(plan.packed ? 0 : 1).dtype;
  plan.shape.dv = node.output(plan.packed ? 0 : 2).dtype;
  INGOT_ASSIGN(auto backward, AttentionBackward::create(plan.shape, node.threads));
  const auto scratch = static_cast<int64_t>(backward->scratch_bytes()),
             workspace = static_cast<int64_t>(backward->workspace_bytes());
  return make_kernel(
      [plan = std::move(plan), backward = std::move(backward)](const RunArguments& args) {
        const AttentionInputs inputs = plan.inputs(args);
        const size_t out = plan.mask_input() + 1;
        const kernels::AttentionGradients gradients = plan.gradients(args);
        for (int stage = 0; stage < backward->stages(); ++stage)
          args.pool.run(backward->tiles(stage), [&](int64_t tile, int thread) {
            backward->run(stage, tile, inputs, args.inputs[out], args.in(out + 1), args.inputs[out + 2], gradients,
                          args.temporary, thread, args.scratch_of(thread));
          });
      },
      workspace, scratch);
}

// Whether the first `operands` inputs (q, k and v, or all of them packed) are of one dtype, as the kernel wants them.
bool operands_alike(const NodeView& node, size_t operands) {
  const DType dtype = node.input(0).dtype;
  for (size_t i = 1; i < operands; ++i)
    if (node.input(i).dtype != dtype) return false;
  return true;
}

// q, k, v, first_visible -> out, lse
bool forward_takes_narrow(const NodeView& node) {
  return operands_alike(node, node.inputs() - 1) && node.output(1).dtype == DType::f32;
}

// q, k, v, first_visible, out, lse, dout -> dq, dk, dv
bool backward_takes_narrow(const NodeView& node) {
  const size_t out = node.inputs() - 3;
  return operands_alike(node, out - 1) && node.input(out + 1).dtype == DType::f32 &&
         node.input(out + 2).dtype == node.input(out).dtype;
}

KernelResult bind_cache_write(const NodeView& node) {
  const Shape &cache = node.input(0).shape, &fresh = node.input(1).shape;
  return make_kernel([cache, fresh](const RunArguments& args) {
    const int64_t heads = cache[1], capacity = cache[2], dim = cache[3], tokens = fresh[1], elements = cache.elements();
    float* out = args.out(0);
    bring_to_output(args, args.in(0), out, elements);
    const auto* start = args.in<int32_t>(2);
    for_ranges(args, fresh[0] * heads, rows_a_tile(tokens * dim), [&](int64_t begin, int64_t end, int) {
      for (int64_t unit = begin; unit < end; ++unit) {
        const int64_t b = unit / heads, h = unit % heads;
        for (int64_t t = 0; t < tokens; ++t) {
          const int64_t position = start[b] + t;
          if (position < 0 || position >= capacity) continue;
          std::copy_n(args.in(1) + ((b * tokens + t) * heads + h) * dim, dim, out + (unit * capacity + position) * dim);
        }
      }
    });
  });
}

KernelResult bind_cached_attention(const NodeView& node) {
  const auto& a = node.node.attributes.as<CachedAttentionAttributes>();
  const Shape &q = node.input(0).shape, &cache = node.input(1).shape;
  kernels::CachedAttentionShape shape{
      .batch = q[0], .tokens = q[1], .heads = q[2], .kv_heads = cache[1], .head_dim = q[3], .capacity = cache[2]};
  shape.scale = static_cast<float>(a.scale);
  shape.window = a.window;
  shape.softcap = static_cast<float>(a.softcap);
  INGOT_ASSIGN(auto attention, kernels::CachedAttention::create(shape, node.threads));
  const auto scratch = static_cast<int64_t>(attention->scratch_bytes());
  return make_kernel(
      [attention = std::move(attention)](const RunArguments& args) {
        args.pool.run(attention->tiles(), [&](int64_t tile, int thread) {
          attention->run(tile, args.in(0), args.in(1), args.in(2), args.in<int32_t>(3), args.out(0), thread,
                         args.scratch_of(thread));
        });
      },
      0, scratch);
}

}  // namespace

std::span<const Binding> attention_bindings() {
  static constexpr Binding kBindings[] = {
      {"attention", [](const NodeView& node) { return forward_kernel(node, plan_separate(node)); },
       forward_takes_narrow},
      {"attention_grad", [](const NodeView& node) { return backward_kernel(node, plan_separate(node)); },
       backward_takes_narrow},
      {"attention_packed", [](const NodeView& node) { return forward_kernel(node, plan_packed(node)); },
       forward_takes_narrow},
      {"attention_packed_grad", [](const NodeView& node) { return backward_kernel(node, plan_packed(node)); },
       backward_takes_narrow},
      {"cache_write", bind_cache_write},
      {"cached_attention", bind_cached_attention}};
  return kBindings;
}

}  // namespace ingot
