#include "cost/op_cost.h"

#include <algorithm>
#include <array>

#include "ops/attention.h"
#include "ops/attention_packed.h"
#include "ops/cached_attention.h"
#include "ops/cluster.h"
#include "ops/linear.h"
#include "ops/linear_cross_entropy.h"
#include "ops/matmul.h"
#include "ops/registry.h"

namespace ingot {
namespace {

struct View {
  const Graph& graph;
  const Node& node;

  const Shape& in(size_t i) const { return graph.shape(node.inputs[i]); }
  const Shape& out(size_t i = 0) const { return graph.shape(node.outputs[i]); }
  double in_elements(size_t i = 0) const { return static_cast<double>(in(i).elements()); }
  double out_elements(size_t i = 0) const { return static_cast<double>(out(i).elements()); }
  double bytes_in(size_t i) const { return static_cast<double>(graph.type(node.inputs[i]).bytes()); }
  double bytes_out(size_t i) const { return static_cast<double>(graph.type(node.outputs[i]).bytes()); }
  // Every operand once.
  double all_bytes() const {
    double bytes = 0;
    for (size_t i = 0; i < node.inputs.size(); ++i) bytes += bytes_in(i);
    for (size_t i = 0; i < node.outputs.size(); ++i) bytes += bytes_out(i);
    return bytes;
  }
};

OpCost vector_cost(const View& n, double flops) {
  return {flops, n.all_bytes(), false};
}
OpCost matrix_cost(const View& n, double flops) {
  return {flops, n.all_bytes(), true};
}

// Flops an element of an elementwise op; 1 for those that are not listed.
double flops_an_element(std::string_view op) {
  struct Entry {
    std::string_view op;
    double flops;
  };
  static constexpr auto kEntries = std::to_array<Entry>({{"div", 4},
                                                         {"dropout", 12},
                                                         {"erf", kExpFlops},
                                                         {"exp", kExpFlops},
                                                         {"gelu", kExpFlops + 4},
                                                         {"gelu_grad", 2 * kExpFlops + 6},
                                                         {"gelu_tanh", kExpFlops + 8},
                                                         {"gelu_tanh_grad", kExpFlops + 16},
                                                         {"log", kExpFlops},
                                                         {"rsqrt", 4},
                                                         {"sigmoid", kExpFlops + 4},
                                                         {"silu", kExpFlops + 5},
                                                         {"silu_grad", kExpFlops + 10},
                                                         {"sqrt", 4},
                                                         {"tanh", kExpFlops + 4}});
  const auto found = std::ranges::find(kEntries, op, &Entry::op);
  return found == kEntries.end() ? 1 : found->flops;
}

double flops_an_element(const Program& program) {
  double flops = 0;
  for (const ProgramInstruction& instruction : program) flops += flops_an_element(instruction.op);
  return flops;
}

double product_flops(const Shape& a, const Shape& b, const MatmulAttributes& attributes) {
  const auto extents = matmul_extents(a, b, attributes);
  INGOT_CHECK(extents.ok(), "a product of {} and {} in a verified graph", a.to_string(), b.to_string());
  return 2.0 * static_cast<double>(extents->batch) * static_cast<double>(extents->rows) *
         static_cast<double>(extents->k) * static_cast<double>(extents->n);
}

// Pairs of query and key that a causal row of `tokens` sees, of at most `window` keys a query.
double visible_pairs(int64_t tokens, int64_t window) {
  const auto t = static_cast<double>(tokens);
  const double w = window > 0 && window < tokens ? static_cast<double>(window) : t;
  return w * (w + 1) / 2 + (t - w) * w;
}

struct AttentionExtents {
  int64_t batch, tokens, heads, head_dim, window;
  bool capped;
};

// `products` of the size of the scores: 2 forward (q·k, p·v), 5 backward (q·k again, dp, dv, dq, dk).
OpCost attention_cost(const View& n, const AttentionExtents& e, double products) {
  const double pairs = static_cast<double>(e.batch * e.heads) * visible_pairs(e.tokens, e.window);
  const double softmax = kExpFlops + 4 + (e.capped ? kExpFlops + 6 : 0);
  return matrix_cost(n, pairs * (products * 2 * static_cast<double>(e.head_dim) + softmax));
}

OpCost plain_attention(const View& n, double products) {
  const Shape& q = n.in(0);  // [B,T,H,D]
  const auto& a = n.node.attributes.as<AttentionAttributes>();
  return attention_cost(n, {q[0], q[1], q[2], q[3], a.window, a.softcap > 0}, products);
}

OpCost packed_attention(const View& n, double products) {
  const auto& a = n.node.attributes.as<AttentionPackedAttributes>();
  return attention_cost(n, {n.in(0)[0], n.in(0)[1], a.heads, a.head_dim, a.window, a.softcap > 0}, products);
}

// New tokens against a cache that is half full on the average.
OpCost cached_attention(const View& n) {
  const Shape &q = n.in(0), &cache = n.in(1);  // [B,T,H,D], [B,Hkv,S,D]
  const int64_t window = n.node.attributes.as<CachedAttentionAttributes>().window;
  const double seen = static_cast<double>(window > 0 ? std::min(window, cache[2]) : cache[2]) / 2;
  const double pairs = static_cast<double>(q[0] * q[1] * q[2]) * seen;
  const double read = static_cast<double>(q[0] * cache[1] * q[3]) * seen * 2 * 4;
  return {pairs * (4 * static_cast<double>(q[3]) + kExpFlops), n.bytes_in(0) + n.bytes_out(0) + read, true};
}

// x [R,C] times w [C,V]: `products` of that size, and the softmax over rows of V that never reach memory.
OpCost linear_cross_entropy(const View& n, double products) {
  const auto rows = static_cast<double>(n.in(0)[0]), width = static_cast<double>(n.in(0)[1]);
  const double vocabulary = n.in_elements(1) / width;
  const bool capped = n.node.attributes.as<LinearCrossEntropyAttributes>().softcap > 0;
  return matrix_cost(n, rows * vocabulary * (2 * products * width + kExpFlops + 4 + (capped ? kExpFlops + 8 : 0)));
}

OpCost linear(const View& n) {
  const auto& a = n.node.attributes.as<LinearAttributes>();
  const double product = product_flops(n.in(0), n.in(1), {false, a.transpose_b});
  return matrix_cost(n, product + n.out_elements() * flops_an_element(a.program));
}

// The rows that are looked up or added to, not the whole table.
OpCost embedding_grad(const View& n) {
  const double added = n.in_elements(1);
  const bool clears = n.node.inputs.size() < 3;
  return {added, n.bytes_in(0) + 3 * n.bytes_in(1) + (clears ? n.bytes_out(0) : 0), false};
}

struct Rule {
  std::string_view op;
  OpCost (*cost)(const View& node);
};

// Ops that are not elementwise and do not only rename bytes, in alphabetical order.
constexpr auto kRules = std::to_array<Rule>({
    // The gradient is read three times.
    {"adafactor",
     [](const View& n) {
       return OpCost{12 * n.out_elements(), 5 * n.bytes_out(0), false};
     }},
    {"adafactor_vector", [](const View& n) { return vector_cost(n, 14 * n.out_elements()); }},
    {"adamw", [](const View& n) { return vector_cost(n, 20 * n.out_elements()); }},
    {"adamw_8bit", [](const View& n) { return vector_cost(n, 70 * n.out_elements()); }},
    {"attention", [](const View& n) { return plain_attention(n, 2); }},
    {"attention_grad", [](const View& n) { return plain_attention(n, 5); }},
    {"attention_packed", [](const View& n) { return packed_attention(n, 2); }},
    {"attention_packed_grad", [](const View& n) { return packed_attention(n, 5); }},
    {"broadcast_to", [](const View& n) { return vector_cost(n, 0); }},
    {"cache_write",
     [](const View& n) {
       return OpCost{0, 2 * n.bytes_in(1), false};
     }},
    {"cached_attention", cached_attention},
    {"clip_factor", [](const View& n) { return vector_cost(n, n.all_bytes()); }},
    {"cluster",
     [](const View& n) {
       return vector_cost(n, n.out_elements() * flops_an_element(n.node.attributes.as<ClusterAttributes>().program));
     }},
    {"constant", [](const View& n) { return vector_cost(n, 0); }},
    {"cross_entropy", [](const View& n) { return vector_cost(n, (kExpFlops + 3) * n.in_elements()); }},
    {"cross_entropy_grad", [](const View& n) { return vector_cost(n, (kExpFlops + 5) * n.in_elements()); }},
    {"embedding",
     [](const View& n) {
       return OpCost{0, n.bytes_in(1) + 2 * n.bytes_out(0), false};
     }},
    {"embedding_grad", embedding_grad},
    {"glu", [](const View& n) { return vector_cost(n, (kExpFlops + 6) * n.out_elements()); }},
    {"glu_grad", [](const View& n) { return vector_cost(n, (kExpFlops + 12) * n.in_elements(1)); }},
    {"layer_norm", [](const View& n) { return vector_cost(n, 8 * n.out_elements()); }},
    {"layer_norm_grad", [](const View& n) { return vector_cost(n, 16 * n.out_elements()); }},
    {"linear", linear},
    {"linear_cross_entropy", [](const View& n) { return linear_cross_entropy(n, 1); }},
    {"linear_cross_entropy_grad", [](const View& n) { return linear_cross_entropy(n, 3); }},
    {"lion", [](const View& n) { return vector_cost(n, 9 * n.out_elements()); }},
    {"mask_scores", [](const View& n) { return vector_cost(n, n.out_elements()); }},
    {"matmul",
     [](const View&
            n) { return matrix_cost(n, product_flops(n.in(0), n.in(1), n.node.attributes.as<MatmulAttributes>())); }},
    {"matmul_add",
     [](const View&
            n) { return matrix_cost(n, product_flops(n.in(1), n.in(2), n.node.attributes.as<MatmulAttributes>())); }},
    {"muon", [](const View& n) { return vector_cost(n, 3 * n.out_elements()); }},
    {"muon_momentum", [](const View& n) { return vector_cost(n, 6 * n.out_elements()); }},
    {"quantized_embedding",
     [](const View& n) { return OpCost{n.out_elements(), n.bytes_in(2) + 2 * n.bytes_out(0), false}; }},
    {"quantized_linear",
     [](const View& n) { return matrix_cost(n, 2 * n.out_elements() * static_cast<double>(n.in(1)[1])); }},
    {"repeat_interleave", [](const View& n) { return vector_cost(n, 0); }},
    {"residual_layer_norm", [](const View& n) { return vector_cost(n, 9 * n.out_elements()); }},
    {"residual_rms_norm", [](const View& n) { return vector_cost(n, 6 * n.out_elements()); }},
    {"rms_norm", [](const View& n) { return vector_cost(n, 5 * n.out_elements()); }},
    {"rms_norm_grad", [](const View& n) { return vector_cost(n, 12 * n.out_elements()); }},
    {"rope", [](const View& n) { return vector_cost(n, 3 * n.out_elements()); }},
    {"softmax", [](const View& n) { return vector_cost(n, (kExpFlops + 4) * n.out_elements()); }},
    {"softmax_grad", [](const View& n) { return vector_cost(n, 4 * n.out_elements()); }},
    {"sum", [](const View& n) { return vector_cost(n, n.in_elements()); }},
    {"sum_squares", [](const View& n) { return vector_cost(n, 2 * n.in_elements()); }},
    {"transpose", [](const View& n) { return vector_cost(n, 0); }},
});

const Rule* find_rule(std::string_view op) {
  const auto found = std::ranges::find(kRules, op, &Rule::op);
  return found == kRules.end() ? nullptr : &*found;
}

bool only_renames(const OpTraits& traits) {
  return traits.view || traits.part || traits.join;
}

// Joined parameters are neighbours already, and pieces along the first axes are where their whole is; else a copy.
OpCost renaming_cost(const View& n) {
  const OpTraits& traits = n.node.op->traits;
  if (traits.view) return {};
  const int64_t axis = traits.join ? (*traits.join)(n.node.attributes) : (*traits.part)(n.node.attributes, 0).axis;
  const Shape& whole = traits.join ? n.out() : n.in(0);
  for (int64_t i = 0; i < axis; ++i)
    if (whole[static_cast<int>(i)] != 1) return vector_cost(n, 0);
  if (!traits.join) return {};
  const bool of_variables =
      std::ranges::all_of(n.node.inputs, [&](ValueId input) { return n.graph.producer(input) == nullptr; });
  return of_variables ? OpCost{} : vector_cost(n, 0);
}

}  // namespace

OpCost cost_of(const Graph& graph, const Node& node) {
  const View view{graph, node};
  if (only_renames(node.op->traits)) return renaming_cost(view);
  if (const Rule* rule = find_rule(node.op->name)) return rule->cost(view);
  return vector_cost(view, view.out_elements() * flops_an_element(node.op->name));
}

bool has_cost_rule(const OpDef& op) {
  return op.traits.elementwise || only_renames(op.traits) || find_rule(op.name) != nullptr;
}

}  // namespace ingot
