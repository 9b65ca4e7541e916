#include "export/onnx_attention.h"

#include <fmt/ranges.h>

#include <limits>
#include <numbers>

#include "ops/cached_attention.h"
#include "ops/rope.h"

namespace ingot {
namespace {

using Ints = std::vector<int64_t>;

// Whether each query may see each key, bool [B,1,T,P+T].
std::string visible(OnnxLowering& to, int64_t window) {
  const auto make = [&] {
    const std::string past = to.past();
    const std::string total = to.emit("Add", {past, to.tokens()});
    const std::string one = to.scalar(int64_t{1}), zero = to.scalar(int64_t{0});
    const std::string keys = to.emit("Range", {zero, total, one});  // [P+T]
    const std::string queries =
        to.emit("Unsqueeze", {to.emit("Range", {past, total, one}), to.integers({1})});  // [T,1]
    std::string near = to.emit("LessOrEqual", {keys, queries});                          // [T,P+T]
    if (window > 0) {
      const std::string first = to.emit("Sub", {queries, to.scalar(window)});
      near = to.emit("And", {near, to.emit("Greater", {keys, first})});
    }
    // A mask of another width than the tokens' is an error here, and not broadcast.
    const OnnxLowering::Names extents{to.emit("Unsqueeze", {to.batch(), to.integers({0})}), to.integers({1, 1}),
                                      to.emit("Unsqueeze", {total, to.integers({0})})};
    const std::string mask = to.emit("Reshape", {"attention_mask", to.emit("Concat", extents, {{"axis", int64_t{0}}})});
    return to.emit("And", {near, to.cast(mask, kOnnxBool)});
  };
  return to.shared(fmt::format("visible {}", window), "attention_mask", make);
}

// What is added to scores, f32 [B,1,T,P+T]: 0, or so low a number that the weight is 0. It is finite so that a query
// which sees nothing has no NaN for a result.
std::string bias(OnnxLowering& to, int64_t window, bool grouped) {
  const std::string plain = to.shared(fmt::format("bias {}", window), "attention_mask", [&] {
    const double lowest = std::numeric_limits<float>::lowest();
    return to.emit("Where", {visible(to, window), to.scalar(0.0), to.scalar(lowest)});
  });
  if (!grouped) return plain;
  return to.shared(fmt::format("grouped bias {}", window), "attention_mask", [&] {
    return to.emit("Unsqueeze", {plain, to.integers({1})});
  });
}

// 1 for a query that sees anything, else 0, f32 [B,T,1,1].
std::string sees(OnnxLowering& to, int64_t window) {
  return to.shared(fmt::format("sees {}", window), "attention_mask", [&] {
    const std::string numbers = to.cast(visible(to, window), onnx_type(DType::f32));
    const std::string any = to.emit("ReduceMax", {numbers}, {{"axes", Ints{3}}, {"keepdims", int64_t{0}}});  // [B,1,T]
    return to.emit("Reshape", {any, to.integers({0, -1, 1, 1})});
  });
}

std::string transposed(OnnxLowering& to, const std::string& x, Ints permutation) {
  return to.emit("Transpose", {x}, {{"perm", std::move(permutation)}});
}

// Each query's weights on all keys, of the same shape as `scores`.
std::string weights_of(OnnxLowering& to, std::string scores, const CachedAttentionAttributes& settings, bool grouped) {
  if (settings.softcap != 0) {
    const std::string part = to.emit("Tanh", {to.emit("Mul", {scores, to.scalar(1 / settings.softcap)})});
    scores = to.emit("Mul", {part, to.scalar(settings.softcap)});
  }
  return to.emit("Softmax", {to.emit("Add", {scores, bias(to, settings.window, grouped)})}, {{"axis", int64_t{-1}}});
}

// Each head of keys serves a group of queries: q [B,Hkv,G,T,D], k and v [B,Hkv,1,P+T,D]. Gives [B,T,H,D].
std::string grouped_heads(OnnxLowering& to, const std::string& q, const std::string& k, const std::string& v,
                          const Extents& q_extents, int64_t kv_heads, const CachedAttentionAttributes& settings) {
  const int64_t heads = q_extents[2].factor, dim = q_extents[3].factor;
  const std::string groups = to.emit("Reshape", {q, to.integers({0, 0, kv_heads, heads / kv_heads, dim})});
  const std::string one = to.integers({2});
  const std::string keys = to.emit("Unsqueeze", {transposed(to, k, {0, 1, 3, 2}), one});
  const std::string scores = to.emit("MatMul", {transposed(to, groups, {0, 2, 3, 1, 4}), keys});
  const std::string weights = weights_of(to, scores, settings, true);
  const std::string out = to.emit("MatMul", {weights, to.emit("Unsqueeze", {v, one})});
  return to.emit("Reshape", {transposed(to, out, {0, 3, 1, 2, 4}), to.integers({0, 0, heads, dim})});
}

std::string plain_heads(OnnxLowering& to, const std::string& q, const std::string& k, const std::string& v,
                        const CachedAttentionAttributes& settings) {
  const std::string scores = to.emit("MatMul", {transposed(to, q, {0, 2, 1, 3}), transposed(to, k, {0, 1, 3, 2})});
  const std::string weights = weights_of(to, scores, settings, false);
  return transposed(to, to.emit("MatMul", {weights, v}), {0, 2, 1, 3});
}

// sin or cos of the angles of all tokens, f32 [B,T,1,D/2]. Whole turns are taken off in double: at large positions f32
// would lose the angle.
std::string turned(OnnxLowering& to, const char* function, const std::string& positions,
                   const std::vector<double>& inv_freq) {
  const std::string key = fmt::format("{} {}", positions, fmt::join(inv_freq, " "));
  const std::string angles = to.shared("angles " + key, "rotary", [&] {
    std::vector<double> turns = inv_freq;
    for (double& turn : turns) turn /= 2 * std::numbers::pi;
    const std::string places =
        to.emit("Unsqueeze", {to.cast(positions, onnx_type(DType::f64)), to.integers({2, 3})});  // [B,T,1,1]
    const std::string all =
        to.emit("Mul", {places, to.numbers(turns, {static_cast<int64_t>(turns.size())}, DType::f64)});
    const std::string part = to.emit("Sub", {all, to.emit("Floor", {all})});
    const std::string angle = to.emit("Mul", {part, to.numbers({2 * std::numbers::pi}, {}, DType::f64)});
    return to.cast(angle, onnx_type(DType::f32));
  });
  return to.shared(function + key, "rotary", [&] { return to.emit(function, {angles}); });
}

}  // namespace

Status lower_cache_write(OnnxLowering& to, const Node& node) {
  if (!to.is_cache(node.inputs[0]) || node.inputs[2] != to.start())
    return usage_error("the op cache_write at {} writes elsewhere than behind the tokens in a cache", node.path);
  const std::string fresh = transposed(to, to.input(node, 1), {0, 2, 1, 3});  // [B,Hkv,T,D]
  to.define(node.outputs[0], to.emit("Concat", {to.input(node, 0), fresh}, {{"axis", int64_t{2}}}));
  return {};
}

Status lower_cached_attention(OnnxLowering& to, const Node& node) {
  const auto& settings = node.attributes.as<CachedAttentionAttributes>();
  if (!to.is_extended_cache(node.inputs[1]) || !to.is_extended_cache(node.inputs[2]) || node.inputs[3] != to.start())
    return usage_error("the op cached_attention at {} reads other caches than those with the new tokens", node.path);
  const Extents& q_extents = to.extents(node.inputs[0]);
  const Extent kv_heads = to.extents(node.inputs[1])[1];
  if (!q_extents[2].fixed() || !q_extents[3].fixed() || !kv_heads.fixed())
    return usage_error("the op cached_attention at {} has heads that depend on the batch size or the length",
                       node.path);
  std::string q = to.input(node, 0);
  if (settings.scale != 1) q = to.emit("Mul", {q, to.scalar(settings.scale)});
  const std::string k = to.input(node, 1), v = to.input(node, 2);
  const std::string out = q_extents[2] == kv_heads ? plain_heads(to, q, k, v, settings)
                                                   : grouped_heads(to, q, k, v, q_extents, kv_heads.factor, settings);
  to.define(node.outputs[0], to.emit("Mul", {out, sees(to, settings.window)}));
  return {};
}

Status lower_rope(OnnxLowering& to, const Node& node) {
  const auto& [inv_freq, rotated_heads, inverse] = node.attributes.as<RopeAttributes>();
  if (rotated_heads != -1) return usage_error("the op rope at {} turns some heads alone", node.path);
  const std::string x = to.input(node, 0), positions = to.input(node, 1);
  const std::string cos = turned(to, "Cos", positions, inv_freq), sin = turned(to, "Sin", positions, inv_freq);
  const auto half = static_cast<int64_t>(inv_freq.size());
  const auto halves = to.emit_many("Split", {x, to.integers({half, half})}, 2, {{"axis", int64_t{3}}});
  const auto combined = [&](const char* op, size_t a, size_t b) {
    return to.emit(op, {to.emit("Mul", {halves[a], cos}), to.emit("Mul", {halves[b], sin})});
  };
  const std::string first = combined(inverse ? "Add" : "Sub", 0, 1), second = combined(inverse ? "Sub" : "Add", 1, 0);
  to.define(node.outputs[0], to.emit("Concat", {first, second}, {{"axis", int64_t{3}}}));
  return {};
}

}  // namespace ingot
