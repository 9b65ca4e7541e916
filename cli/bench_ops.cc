#include "bench_ops.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/glob.h"
#include "graph/text.h"
#include "ops/adamw_8bit.h"
#include "ops/registry.h"
#include "optim/step_graph.h"

namespace ingot::cli {
namespace {

// The IR of one op. $R rows, $C width, $N inner width, $2N twice that, $V vocabulary.
struct OpCase {
  std::string_view name, text;
};
constexpr auto kCases = std::to_array<OpCase>({
    {"matmul", R"(%0 = state "x" : f32[$R,$C]
%1 = state "w" : f32[$C,$N]
%2 = matmul(%0, %1) : f32[$R,$N]
output "y" = %2)"},
    {"matmul_input_gradient", R"(%0 = state "dy" : f32[$R,$N]
%1 = state "w" : f32[$C,$N]
%2 = matmul(%0, %1) {transpose_b=true} : f32[$R,$C]
output "dx" = %2)"},
    {"matmul_weight_gradient", R"(%0 = state "x" : f32[$R,$C]
%1 = state "dy" : f32[$R,$N]
%2 = matmul(%0, %1) {transpose_a=true} : f32[$C,$N]
output "dw" = %2)"},
    {"linear_bias_gelu", R"(%0 = state "x" : f32[$R,$C]
%1 = state "w" : f32[$C,$N]
%2 = state "b" : f32[$N]
%3 = linear(%0, %1, %2) {program=[{op="add", inputs=[0,1], attributes="{}"},{op="gelu_tanh", inputs=[2], attributes="{}"}], outputs=[3]} : f32[$R,$N]
output "y" = %3)"},
    {"linear_cross_entropy", R"(%0 = state "x" : f32[$R,$C]
%1 = state "w" : f32[$V,$C]
%2 = state "targets" : i32[$R]
%3 = state "scale" : f32[]
%4 = linear_cross_entropy(%0, %1, %2, %3) {transpose_b=true} : f32[]
output "y" = %4)"},
    {"linear_cross_entropy_grad", R"(%0 = state "x" : f32[$R,$C]
%1 = state "w" : f32[$V,$C]
%2 = state "targets" : i32[$R]
%3 = state "scale" : f32[]
%4, %5, %6 = linear_cross_entropy_grad(%0, %1, %2, %3, %3) {transpose_b=true} : f32[], f32[$R,$C], f32[$V,$C]
output "y" = %4
output "dx" = %5
output "dw" = %6)"},
    {"layer_norm", R"(%0 = state "x" : f32[$R,$C]
%1 = state "w" : f32[$C]
%2, %3, %4 = layer_norm(%0, %1, %1) : f32[$R,$C], f32[$R], f32[$R]
output "y" = %2
output "mean" = %3
output "rstd" = %4)"},
    {"layer_norm_grad", R"(%0 = state "x" : f32[$R,$C]
%1 = state "w" : f32[$C]
%2 = state "mean" : f32[$R]
%3 = state "rstd" : f32[$R]
%4 = state "dy" : f32[$R,$C]
%5, %6, %7 = layer_norm_grad(%0, %1, %2, %3, %4) : f32[$R,$C], f32[$C], f32[$C]
output "dx" = %5
output "dw" = %6
output "db" = %7)"},
    {"residual_layer_norm", R"(%0 = state "x" : f32[$R,$C]
%1 = state "delta" : f32[$R,$C]
%2 = state "w" : f32[$C]
%3, %4, %5, %6 = residual_layer_norm(%0, %1, %2, %2) : f32[$R,$C], f32[$R,$C], f32[$R], f32[$R]
output "sum" = %3
output "y" = %4)"},
    {"rms_norm", R"(%0 = state "x" : f32[$R,$C]
%1 = state "w" : f32[$C]
%2, %3 = rms_norm(%0, %1) : f32[$R,$C], f32[$R]
output "y" = %2
output "rstd" = %3)"},
    {"rms_norm_grad", R"(%0 = state "x" : f32[$R,$C]
%1 = state "w" : f32[$C]
%2 = state "rstd" : f32[$R]
%3 = state "dy" : f32[$R,$C]
%4, %5 = rms_norm_grad(%0, %1, %2, %3) : f32[$R,$C], f32[$C]
output "dx" = %4
output "dw" = %5)"},
    {"glu", R"(%0 = state "x" : f32[$R,$2N]
%1 = glu(%0) : f32[$R,$N]
output "y" = %1)"},
    {"glu_grad", R"(%0 = state "x" : f32[$R,$2N]
%1 = state "dy" : f32[$R,$N]
%2 = glu_grad(%0, %1) : f32[$R,$2N]
output "dx" = %2)"},
    {"gelu_tanh", R"(%0 = state "x" : f32[$R,$N]
%1 = gelu_tanh(%0) : f32[$R,$N]
output "y" = %1)"},
    {"softmax", R"(%0 = state "x" : f32[$R,$N]
%1 = softmax(%0) : f32[$R,$N]
output "y" = %1)"},
    {"add", R"(%0 = state "x" : f32[$R,$C]
%1 = state "y" : f32[$R,$C]
%2 = add(%0, %1) : f32[$R,$C]
output "z" = %2)"},
    {"dropout", R"(%0 = state "x" : f32[$R,$C]
%1 = dropout(%0) {p=0.1, stream="bench"} : f32[$R,$C]
output "y" = %1)"},
    {"transpose", R"(%0 = state "x" : f32[$R,$C]
%1 = transpose(%0) {permutation=[1,0]} : f32[$C,$R]
output "y" = %1)"},
    {"sum", R"(%0 = state "x" : f32[$R,$C]
%1 = sum(%0) {axes=[0]} : f32[$C]
output "y" = %1)"},
    {"sum_squares", R"(%0 = state "x" : f32[$N,$C]
%1 = sum_squares(%0) : f32[]
output "y" = %1)"},
    {"embedding", R"(%0 = state "table" : f32[$V,$C]
%1 = state "ids" : i32[$R]
%2 = embedding(%0, %1) : f32[$R,$C]
output "y" = %2)"},
    {"embedding_grad", R"(%0 = state "ids" : i32[$R]
%1 = state "dy" : f32[$R,$C]
%2 = embedding_grad(%0, %1) {rows=$V} : f32[$V,$C]
output "dtable" = %2)"},
    {"adamw", R"(%0 = parameter "p" : f32[$N,$C]
%1 = state "g" : f32[$N,$C]
%2 = state "m" : f32[$N,$C]
%3 = state "v" : f32[$N,$C]
%4 = state "control" : f32[3]
%5 = state "clip" : f32[3]
%6, %7, %8 = adamw(%0, %1, %2, %3, %4, %5) {weight_decay=0.1} : f32[$N,$C], f32[$N,$C], f32[$N,$C]
store %0 = %6
store %2 = %7
store %3 = %8)"},
    {"adafactor", R"(%0 = parameter "p" : f32[$N,$C]
%1 = state "g" : f32[$N,$C]
%2 = state "v_rows" : f32[$N]
%3 = state "v_columns" : f32[$C]
%4 = state "control" : f32[3]
%5 = state "clip" : f32[3]
%6, %7, %8 = adafactor(%0, %1, %2, %3, %4, %5) {weight_decay=0.1} : f32[$N,$C], f32[$N], f32[$C]
store %0 = %6
store %2 = %7
store %3 = %8)"},
    {"adamw_8bit", R"(%0 = parameter "p" : f32[$N,$C]
%1 = state "g" : f32[$N,$C]
%2 = state "m_codes" : u8[$N,$C]
%3 = state "v_codes" : u8[$N,$C]
%4 = state "m_scales" : f32[$B]
%5 = state "v_scales" : f32[$B]
%6 = state "control" : f32[3]
%7 = state "clip" : f32[3]
%8, %9, %10, %11, %12 = adamw_8bit(%0, %1, %2, %3, %4, %5, %6, %7) {weight_decay=0.1} : f32[$N,$C], u8[$N,$C], u8[$N,$C], f32[$B], f32[$B]
store %0 = %8
store %2 = %9
store %3 = %10
store %4 = %11
store %5 = %12)"},
    {"lion", R"(%0 = parameter "p" : f32[$N,$C]
%1 = state "g" : f32[$N,$C]
%2 = state "m" : f32[$N,$C]
%3 = state "control" : f32[3]
%4 = state "clip" : f32[3]
%5, %6 = lion(%0, %1, %2, %3, %4) {weight_decay=0.1} : f32[$N,$C], f32[$N,$C]
store %0 = %5
store %2 = %6)"},
    {"muon_momentum", R"(%0 = state "g" : f32[$N,$C]
%1 = state "m" : f32[$N,$C]
%2 = state "clip" : f32[3]
%3, %4 = muon_momentum(%0, %1, %2) : f32[$N,$C], f32[$N,$C]
output "direction" = %4
store %1 = %3)"},
    {"muon", R"(%0 = parameter "p" : f32[$N,$C]
%1 = state "direction" : f32[$N,$C]
%2 = state "control" : f32[3]
%3 = state "clip" : f32[3]
%4 = muon(%0, %1, %2, %3) {scale=11.0, weight_decay=0.1} : f32[$N,$C]
store %0 = %4)"},
});

std::string with_sizes(std::string_view text, const OpSizes& sizes) {
  const std::array<std::pair<std::string_view, int64_t>, 6> values{{{"$2N", 2 * sizes.inner},
                                                                    {"$B", dynamic_blocks(sizes.inner * sizes.width)},
                                                                    {"$R", sizes.rows},
                                                                    {"$C", sizes.width},
                                                                    {"$N", sizes.inner},
                                                                    {"$V", sizes.vocabulary}}};
  std::string result = "graph \"bench\"\n" + std::string(text);
  for (const auto& [name, value] : values)
    for (size_t at = 0; (at = result.find(name, at)) != std::string::npos;)
      result.replace(at, name.size(), std::to_string(value));
  return result;
}

void fill_op(const std::string& name, const TensorView& tensor, int64_t vocabulary) {
  fill_random(name, tensor, vocabulary);
  const auto set = [&](std::initializer_list<float> values) { std::ranges::copy(values, tensor.as<float>()); };
  if (name == "control") set({1e-4f, 0.1f, 0.05f});
  if (name == "clip") set({1.0f, 0.0f, 1.0f});
  if (name == "v" || name == "v_rows" || name == "v_columns" || name == "v_scales")  // squares
    for (float& value : tensor.span<float>()) value *= value;
}

// Tokens of rows that are one document each.
void fill_step(const std::string& name, const TensorView& tensor, int64_t vocabulary) {
  if (name == "first_visible") return fill_random(name, tensor, 1);
  if (name == "loss_scale") {
    *tensor.as<float>() = 1e-3f;
    return;
  }
  fill_random(name, tensor, vocabulary);
  if (name != "positions") return;
  const int64_t tokens = tensor.shape[-1];
  for (int64_t i = 0; i < tensor.shape.elements(); ++i) tensor.as<int32_t>()[i] = static_cast<int32_t>(i % tokens);
}

// Whether a node belongs to the first block ("transformer.h.0", "model.layers.0.mlp").
bool in_first_block(const NodeTime& node) {
  return glob_match("*.0", node.path) || glob_match("*.0.*", node.path);
}

Result<Model> one_layer_of(const Model& model) {
  const char* key = model.config().model_type == "gpt2" ? "n_layer" : "num_hidden_layers";
  return model.with_overrides(fmt::format("{{\"{}\": 1}}", key), "bench layer");
}

}  // namespace

std::vector<std::string> op_cases() {
  std::vector<std::string> names;
  for (const OpCase& op : kCases) names.emplace_back(op.name);
  return names;
}

Result<BenchRow> bench_op(const std::string& name, const OpSizes& sizes, int64_t repetitions,
                          const MachineLimits& limits, const ThreadPool& pool) {
  const auto found = std::ranges::find(kCases, name, &OpCase::name);
  if (found == kCases.end())
    return usage_error("bench op has no case \"{}\"; there are {}", name, fmt::join(op_cases(), ", "));
  INGOT_ASSIGN(Graph graph, parse_graph(with_sizes(found->text, sizes), find_op));
  const SourceFill fill = [&](const std::string& source, const TensorView& tensor) {
    fill_op(source, tensor, sizes.vocabulary);
  };
  INGOT_ASSIGN(const std::vector<NodeTime> nodes, time_nodes(std::move(graph), fill, repetitions, pool));
  BenchRow row{name, 0, 0, {}};
  for (const NodeTime& node : nodes) row.add(node, limits);
  return row;
}

Result<std::vector<BenchRow>> bench_attention(const AttentionSizes& s, int64_t repetitions, const MachineLimits& limits,
                                              const ThreadPool& pool) {
  const int64_t kv_heads = s.kv_heads > 0 ? s.kv_heads : s.heads;
  if (s.heads % kv_heads != 0) return usage_error("--heads {} is no multiple of --kv-heads {}", s.heads, kv_heads);
  const std::string attributes =
      fmt::format("{{heads={}, kv_heads={}, head_dim={}, scale={}, window={}}}", s.heads, kv_heads, s.head_dim,
                  1.0 / std::sqrt(static_cast<double>(s.head_dim)), s.window);
  const std::string qkv = fmt::format("f32[{},{},{}]", s.batch, s.tokens, (s.heads + 2 * kv_heads) * s.head_dim);
  const std::string out = fmt::format("f32[{},{},{}]", s.batch, s.tokens, s.heads * s.head_dim);
  const std::string text = fmt::format(
      "graph \"attention\"\n%0 = state \"qkv\" : {0}\n%1 = state \"first_visible\" : i32[{3},{4}]\n%2 = state \"dout\" "
      ": {1}\n"
      "%3, %4 = attention_packed(%0, %1) {2} : {1}, f32[{3},{5},{4},2]\n"
      "%5 = attention_packed_grad(%0, %1, %3, %4, %2) {2} : {0}\noutput \"dqkv\" = %5\n",
      qkv, out, attributes, s.batch, s.tokens, s.heads);
  INGOT_ASSIGN(Graph graph, parse_graph(text, find_op));
  const SourceFill fill = [](const std::string& name, const TensorView& tensor) { fill_random(name, tensor, 1); };
  INGOT_ASSIGN(const std::vector<NodeTime> nodes, time_nodes(std::move(graph), fill, repetitions, pool));
  std::vector<BenchRow> rows{{"forward", 0, 0, {}}, {"backward", 0, 0, {}}};
  for (const NodeTime& node : nodes) rows[node.op == "attention_packed" ? 0 : 1].add(node, limits);
  return rows;
}

Result<std::vector<BenchRow>> bench_layer(const Model& model, int64_t batch, int64_t tokens, int64_t repetitions,
                                          const MachineLimits& limits, const ThreadPool& pool) {
  INGOT_ASSIGN(const Model block, one_layer_of(model));
  INGOT_TRY(block.check_length(tokens, "--seq"));
  StepGraphOptions options;
  options.rows = batch;
  options.tokens = tokens;
  options.dropout = false;
  PassContext context;
  INGOT_ASSIGN(Graph graph, micro_step_graph(block, options, context));
  const SourceFill fill = [&](const std::string& name, const TensorView& tensor) {
    fill_step(name, tensor, block.config().vocab_size);
  };
  INGOT_ASSIGN(const std::vector<NodeTime> nodes, time_nodes(std::move(graph), fill, repetitions, pool));
  std::vector<BenchRow> rows{{"forward", 0, 0, {}}, {"backward", 0, 0, {}}};
  for (const NodeTime& node : nodes) {
    const bool only_renames = node.cost.bytes == 0;
    if (!in_first_block(node) || only_renames) continue;
    rows[node.backward ? 1 : 0].add(node, limits);
    const std::string name = (node.backward ? "backward " : "forward ") + node.op;
    auto row = std::ranges::find(rows, name, &BenchRow::name);
    if (row == rows.end()) row = rows.insert(rows.end(), BenchRow{name, 0, 0, {}});
    row->add(node, limits);
  }
  std::erase_if(rows, [](const BenchRow& row) { return row.seconds <= 0; });
  return rows;
}

}  // namespace ingot::cli
